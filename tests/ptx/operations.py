"""An operation by its opcode: all that compute results from registers alone."""
from arithmetic import BUILDERS
from conversions import convert
from ptx_text import PtxError

OPERATIONS = BUILDERS | {"cvt": convert}


def find_operation(opcode):
    name, *words = opcode.split(".")
    build = OPERATIONS.get(name)
    if build is None:
        raise PtxError(f"the opcode {opcode} is not known: add `{name}` to tests/ptx/arithmetic.py")
    try:
        return build(words)
    except (KeyError, ValueError) as error:
        raise PtxError(f"of the opcode `{name}` this form is not known: {opcode} ({error}); see tests/ptx/operations.py") from error
