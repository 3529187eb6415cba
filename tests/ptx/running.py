"""Kernels by name and type, and all of a kernel's launches."""
from functools import cache

import numpy as np
from kernel_rows import ROWS
from kernel_sources import compile_files, compiled, compiler_options, kernel_names
from machine import Program
from ptx_text import PtxError, read_kernels
from stored_types import STORED_TYPES


@cache
def kernels_of(architecture, type_name):
    return read_kernels(compiled(architecture, type_name).ptx)


def program_of(name, architecture, type_name, kernels=None):
    return Program((kernels or kernels_of(architecture, type_name))[f"lancet_{name}_{type_name}"])


def run_launches(program, name, type_name):
    """The machines that ran the launches of the kernel's row. Throws PtxError at the first that fails."""
    if name not in ROWS:
        raise LookupError(f"the kernel {name} has no row: add a function `@row('{name}')` to tests/ptx/kernel_rows.py, which yields its launches")
    with np.errstate(all="ignore"):  # formulas of what is no number
        return [launch.run(program) for launch in ROWS[name](STORED_TYPES[type_name])]


def texts(kernel):
    return [instruction.text for instruction in kernel.code]


def defects(files, architecture, type_name):
    """(Kernel, what is found wrong with it, "" for nothing) for those that come out otherwise of changed files."""
    first, *others = compiler_options(architecture, type_name)
    options = [first.replace("=sm_", "=compute_"), *others]  # the same PTX, sooner
    kernels, own = read_kernels(compile_files(files, options).ptx), kernels_of(architecture, type_name)
    changed = [name for name in kernel_names() if texts(kernels[f"lancet_{name}_{type_name}"]) != texts(own[f"lancet_{name}_{type_name}"])]
    assert changed, "the change changes no kernel"
    for name in changed:
        try:
            run_launches(program_of(name, architecture, type_name, kernels), name, type_name)
            yield name, ""
        except PtxError as error:
            yield name, str(error)
