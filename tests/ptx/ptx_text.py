"""PTX as text, read into kernels of instructions. What an instruction does is said in instructions.py and arithmetic.py."""
import re
from dataclasses import dataclass, field

SIZES = {"pred": 1, "b8": 1, "u8": 1, "s8": 1, "f16": 2, "bf16": 2, "f32": 4, "f64": 8} | {
    f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (16, 32, 64)
}


class PtxError(Exception):
    """What is wrong with a kernel, or not known of PTX."""


# ---- Operands


@dataclass(frozen=True)
class Register:
    name: str


@dataclass(frozen=True)
class Number:
    """A literal: an integer, or the bits of a number of `float_bytes`."""

    bits: int
    float_bytes: int = 0


@dataclass(frozen=True)
class Name:
    """A variable, a parameter, a label, a special register: `%tid.x`."""

    name: str


@dataclass(frozen=True)
class Address:
    base: object  # Register or Name; None: the offset alone
    offset: int


@dataclass(frozen=True)
class Vector:
    parts: tuple


@dataclass(frozen=True)
class Pair:
    """A result and its predicate: `%r1|%p1`."""

    first: object
    second: object


SINK = Register("_")


@dataclass(frozen=True)
class Instruction:
    opcode: str
    operands: tuple
    line: int
    text: str
    guard: str = ""  # a predicate's register
    guard_is_negated: bool = False


@dataclass
class Variable:
    """A variable of shared or global memory. `size` 0: of as many bytes as a launch gives."""

    name: str
    space: str
    size: int
    align: int
    data: bytes = b""


@dataclass
class Kernel:
    name: str
    parameters: list  # (name, type)
    code: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)
    registers: dict = field(default_factory=dict)  # name -> type
    variables: dict = field(default_factory=dict)


# ---- Reading

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
ENTRY = re.compile(r"\.entry\s+(\w+)\s*\((.*?)\)\s*((?:\.\w+\s+[\d, ]+\s*)*)\{", re.S)
VARIABLE = re.compile(
    r"(?:\.(?:extern|visible|weak|common)\s+)*\.(shared|global|const)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+"
    r"([\w$]+)((?:\[\d*\])*)\s*(?:=\s*(.+))?$",
    re.S,
)
STATEMENT = re.compile(r"\s*(?:(?P<label>[$\w]+):|(?P<open>\{)|(?P<close>\})|(?P<statement>[^;]+);)")
GUARDED = re.compile(r"(?:@(!?)([%\w]+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.S)


def literal(text):
    if match := re.fullmatch(r"0[fF]([0-9A-Fa-f]{8})", text):
        return Number(int(match[1], 16), 4)
    if match := re.fullmatch(r"0[dD]([0-9A-Fa-f]{16})", text):
        return Number(int(match[1], 16), 8)
    if re.fullmatch(r"-?(0[xX][0-9A-Fa-f]+|\d+)U?", text):
        return Number(int(text.rstrip("U"), 0))
    return None


def split(text):
    """At commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "{[(") - (character in "}])")
        if character == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return [*parts, text[begin:].strip()] if text.strip() else []


def constant_data(kind, text):
    """The bytes of a variable's initial value."""
    size = SIZES[kind]
    numbers = [literal(word) for word in split(text.strip().strip("{}"))]
    if None in numbers:
        raise PtxError(f"a variable begins with {text}, which is no number")
    return b"".join((number.bits & (1 << 8 * size) - 1).to_bytes(size, "little") for number in numbers)


def variable(statement):
    match = VARIABLE.match(statement)
    if not match:
        return None
    space, align, kind, name, dimensions, data = match.groups()
    size = SIZES[kind]
    for length in re.findall(r"\[(\d*)\]", dimensions):
        size *= int(length or 0)
    return Variable(name, space, size, int(align or SIZES[kind]), constant_data(kind, data) if data else b"")


class Reader:
    """The body of one kernel: statements, and blocks with registers of their own."""

    def __init__(self, kernel, text, first_line):
        self.kernel, self.text, self.first_line = kernel, text, first_line
        self.scopes = []

    def read(self):
        """Where the body ends."""
        at = 0
        while match := STATEMENT.match(self.text, at):
            at = match.end()
            if match["open"]:
                self.scopes.append({})
            elif match["close"]:
                self.scopes.pop()
                if not self.scopes:
                    return at
            elif match["label"]:
                self.kernel.labels[match["label"]] = len(self.kernel.code)
            else:
                self.statement(match["statement"].strip(), self.first_line + self.text.count("\n", 0, match.start("statement")))
        raise PtxError(f"{self.kernel.name}: its body does not end")

    def statement(self, text, line):
        if text.startswith(".reg"):
            self.declare(text)
        elif found := variable(text):
            self.kernel.variables[found.name] = found
        elif not text.startswith((".pragma", ".loc")):
            self.instruction(text, line)

    def declare(self, text):
        kind, names = re.match(r"\.reg\s+\.(\w+)\s+(.*)", text, re.S).groups()
        if kind not in SIZES:
            raise PtxError(f"{self.kernel.name}: registers of type .{kind}, which tests/ptx/ptx_text.py does not know")
        for name in split(names):
            match = re.fullmatch(r"([%\w]+)<(\d+)>", name)
            for each in [f"{match[1]}{i}" for i in range(int(match[2]))] if match else [name]:
                own = each if len(self.scopes) == 1 else f"{each}@{len(self.kernel.registers)}"
                self.scopes[-1][each] = own
                self.kernel.registers[own] = kind

    def register(self, name):
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def operand(self, text):
        if text == "_":
            return SINK
        if own := self.register(text):
            return Register(own)
        if number := literal(text):
            return number
        if text.startswith("["):
            base, offset = re.fullmatch(r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?\w+))?\s*\]", text).groups()
            where = self.operand(base)
            return Address(None, where.bits) if isinstance(where, Number) else Address(where, int(offset or "0", 0))
        if text.startswith("{"):
            return Vector(tuple(self.operand(part) for part in split(text[1:-1])))
        if "|" in text:
            return Pair(*(self.operand(part.strip()) for part in text.split("|")))
        if re.fullmatch(r"[%$\w.]+", text):
            return Name(text)
        raise PtxError(f"{self.kernel.name}: an operand that tests/ptx/ptx_text.py does not know: {text}")

    def instruction(self, text, line):
        match = GUARDED.match(text)
        if not match:
            raise PtxError(f"{self.kernel.name}, line {line}: no instruction: {text}")
        negated, guard, opcode, operands = match.groups()
        own_guard = self.register(guard) if guard else ""
        if own_guard is None:
            raise PtxError(f"{self.kernel.name}, line {line}: {guard} is no register: {text}")
        read = tuple(map(self.operand, split(operands)))
        self.kernel.code.append(Instruction(opcode, read, line, " ".join(text.split()), own_guard, bool(negated)))


def read_kernels(text):
    """Name -> Kernel, with the module's variables that lie outside of kernels."""
    text = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    kernels, outside, at = {}, "", 0
    for head in ENTRY.finditer(text):
        words = [parameter.split() for parameter in split(head[2])]
        kernel = Kernel(head[1], [(parameter[-1], parameter[1].removeprefix(".")) for parameter in words])
        outside += text[at : head.start()]
        begin = head.end() - 1
        at = begin + Reader(kernel, text[begin:], text.count("\n", 0, begin) + 1).read()
        kernels[kernel.name] = kernel
    statements = re.sub(r"^\s*\.(version|target|address_size)[^\n]*", "", outside + text[at:], flags=re.M).split(";")
    module = {found.name: found for statement in statements if (found := variable(statement.strip()))}
    for kernel in kernels.values():
        kernel.variables = module | kernel.variables
    if re.search(r"\.func\b", text):
        raise PtxError("functions that are called (.func), which tests/ptx does not know")
    return kernels
