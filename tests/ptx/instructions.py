"""Instructions as steps of a machine (machine.py): operands, memory, moves between registers, exchanges within a warp."""
from dataclasses import dataclass
from typing import Callable

import numpy as np

from arithmetic import DTYPES
from operations import find_operation
from ptx_text import SINK, SIZES, Address, Name, Number, Pair, PtxError, Register, Vector

IDENTITY = ("tid", "ntid", "ctaid", "nctaid")


@dataclass(frozen=True)
class Step:
    """What an instruction does to the threads that are at it: `run` computes; a `way` moves them or lets them wait."""

    instruction: object
    run: Callable = None
    way: str = ""  # branch, end, barrier, warp
    target: int = -1


def special_register(machine, name):
    """Tid and the like are of one dimension: y and z are those of a grid without them."""
    name, _, axis = name.removeprefix("%").partition(".")
    if name == "laneid":
        return machine.thread_in_block % 32
    if name not in IDENTITY or axis not in ("x", "y", "z"):
        raise PtxError(f"the special register %{name} is not known: add it to tests/ptx/instructions.py")
    if axis != "x":
        return np.uint32(1 if name in ("ntid", "nctaid") else 0)
    return {"tid": machine.thread_in_block, "ntid": np.uint32(machine.threads), "ctaid": machine.block, "nctaid": np.uint32(machine.blocks)}[name]


# ---- Operands


def as_kind(value, dtype):
    """The bits of a register as a number of this type; of a wider register the low ones."""
    if value.dtype == dtype:
        return value
    if value.dtype.itemsize == dtype.itemsize:
        return value.view(dtype)
    if value.dtype.itemsize < dtype.itemsize:
        raise PtxError(f"a register of {8 * value.dtype.itemsize} bits is read as {8 * dtype.itemsize}")
    return value.astype(f"u{dtype.itemsize}").view(dtype)


def reader(operand, kind):
    """A function of the machine to the operand's value in the threads that are at work."""
    dtype = DTYPES[kind]
    if isinstance(operand, Register) and operand != SINK:
        return lambda machine: as_kind(machine.get(operand.name), dtype)
    if isinstance(operand, Number):
        if operand.float_bytes:
            value = np.array(operand.bits, f"u{operand.float_bytes}")
            if operand.float_bytes == 8 and dtype == np.float32:  # as PTX has it, a literal in f64 may stand for one in f32
                value = value.view(np.float64).astype(np.float32)
            constant = value.view(dtype)
        elif dtype.kind == "f":
            raise PtxError(f"an integer, {operand.bits}, in the place of a {kind}")
        else:
            constant = np.array(operand.bits & (1 << 8 * dtype.itemsize) - 1, f"u{dtype.itemsize}")
            constant = constant.astype(bool) if kind == "pred" else constant.view(dtype)
        return lambda machine: constant
    if isinstance(operand, Name):
        def value(machine):
            if operand.name.startswith("%"):
                found = special_register(machine, operand.name)
                return as_kind(np.asarray(found, np.uint32) if np.ndim(found) == 0 else found[machine.where], dtype)
            return np.array(machine.address_of(operand.name), np.uint64).astype(dtype)

        return value
    raise PtxError(f"an operand in the place of a {kind}: {operand}")


def writer(operand, kind):
    """A function of the machine and a value; registers may be wider, and then sign or zeros fill them."""
    if operand == SINK:
        return lambda machine, value: None
    if not isinstance(operand, Register):
        raise PtxError(f"a result cannot go to {operand}")
    dtype = DTYPES[kind]

    def write(machine, value):
        value = np.asarray(value)
        if value.dtype != dtype:
            raise PtxError(f"a result is {value.dtype}, expected {dtype}")
        machine.set(operand.name, value)

    return write


def address(operand, space):
    """A function of the machine to the places in a space's memory."""
    if not isinstance(operand, Address):
        raise PtxError(f"no address: {operand}")
    base = reader(operand.base, "u64") if operand.base is not None else lambda machine: np.uint64(0)
    if isinstance(operand.base, Register):
        def base(machine):
            value = machine.get(operand.base.name)
            return value if value.dtype.itemsize == 8 else value.astype(np.uint64)

    def places(machine):
        at = np.broadcast_to(np.asarray(base(machine)).astype(np.int64) + operand.offset, len(machine.lanes))
        return machine.place(space, at)

    return places


# ---- Memory

CACHING = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "volatile", "weak"}
CACHING |= {"L1::no_allocate", "L1::evict_first", "L1::evict_last", "L2::128B", "L2::256B"}


def access(opcode):
    """Space, number of parts, kind, whether it is for what never changes."""
    _, *words = opcode.split(".")
    *flags, kind = words
    space = next((flag for flag in flags if flag in ("global", "shared", "param")), None)
    parts = next((int(flag[1:]) for flag in flags if flag in ("v2", "v4", "v8")), 1)
    rest = set(flags) - CACHING - {space, f"v{parts}", "nc"}
    if space is None or rest or kind not in SIZES:
        raise PtxError(f"this form of a load or store is not known: {opcode}; see tests/ptx/instructions.py")
    return space, parts, kind, "nc" in flags


def parts_of(operand, n):
    parts = operand.parts if isinstance(operand, Vector) else (operand,)
    if len(parts) != n:
        raise PtxError(f"{len(parts)} registers for {n} numbers")
    return parts


def load(instruction):
    to, source = instruction.operands
    space, n, kind, is_read_only = access(instruction.opcode)
    size, dtype = SIZES[kind], DTYPES[kind]
    writes = [writer(part, kind) for part in parts_of(to, n)]
    if space == "param":
        def run(machine):
            writes[0](machine, machine.parameter(source.base.name, source.offset, dtype))

        if n > 1:
            raise PtxError(f"this form of a load is not known: {instruction.opcode}")
        return run
    places = address(source, space)

    def run(machine):
        for write, value in zip(writes, machine.memory[space].load(machine.lanes, places(machine), size, n, is_read_only), strict=True):
            write(machine, value.view(dtype))

    return run


def store(instruction):
    to, source = instruction.operands
    space, n, kind, _ = access(instruction.opcode)
    if space == "param":
        raise PtxError("a store to a parameter")
    reads = [reader(part, kind) for part in parts_of(source, n)]
    places, bits = address(to, space), np.dtype(f"u{SIZES[kind]}")

    def run(machine):
        values = [np.asarray(read(machine)).view(bits) for read in reads]
        machine.memory[space].store(machine.lanes, places(machine), values, SIZES[kind], n)

    return run


# ---- Moves


def move(instruction):
    """From register to register, or between one register and several that hold its parts."""
    kind = instruction.opcode.removeprefix("mov.")
    if kind not in DTYPES:
        raise PtxError(f"this form of a move is not known: {instruction.opcode}")
    to, source = instruction.operands
    if isinstance(to, Vector):
        part_size = SIZES[kind] // len(to.parts)
        read, writes = reader(source, kind), [writer(part, f"b{8 * part_size}") for part in to.parts]

        def take_apart(machine):
            value = np.ascontiguousarray(read(machine)).view(f"u{part_size}").reshape(-1, len(writes))
            for i, write in enumerate(writes):
                write(machine, value[:, i])

        return take_apart
    if isinstance(source, Vector):
        part_kind = f"b{8 * SIZES[kind] // len(source.parts)}"
        reads, write = [reader(part, part_kind) for part in source.parts], writer(to, kind)

        def put_together(machine):
            parts = np.broadcast_arrays(*(read(machine) for read in reads))
            write(machine, np.ascontiguousarray(np.stack(parts, -1)).view(DTYPES[kind])[..., 0])

        return put_together
    read, write = reader(source, kind), writer(to, kind)
    return lambda machine: write(machine, read(machine))


def compute(instruction):
    """What arithmetic.py knows."""
    found = find_operation(instruction.opcode)
    to, *sources = instruction.operands
    if len(sources) != len(found.inputs):
        raise PtxError(f"{instruction.opcode} has {len(sources)} operands, expected {len(found.inputs)}")
    reads = [reader(source, kind) for source, kind in zip(sources, found.inputs, strict=True)]
    writes = [(writer(to.first, "pred"), True), (writer(to.second, "pred"), False)] if isinstance(to, Pair) else [(writer(to, found.output), True)]

    def run(machine):
        value = found.function(*(read(machine) for read in reads))
        for write, is_so in writes:
            write(machine, value if is_so else ~value)

    return run


# ---- Exchanges within a warp


def lane_asked(way, lane, by, clamp, segment):
    """Whose value a thread gets, and whether that lane is in range, by the ISA's table of shfl."""
    greatest = (lane & segment) | (clamp & ~segment)
    other = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": (lane & segment) | (by & ~segment)}[way]
    is_there = other >= greatest if way == "up" else other <= greatest
    return np.where(is_there, other, lane), is_there


def shuffle(instruction):
    _, _, way, kind = instruction.opcode.split(".")
    to, value, by, bounds, members = instruction.operands
    to = to if isinstance(to, Pair) else Pair(to, SINK)
    read, read_by, read_bounds, read_members = reader(value, kind), reader(by, "u32"), reader(bounds, "u32"), reader(members, "u32")
    write, write_there = writer(to.first, kind), writer(to.second, "pred")

    def run(machine):
        lanes, in_warp = machine.lanes, (machine.lanes % 32).astype(np.int64)
        limits = np.asarray(read_bounds(machine)).astype(np.int64)
        other, is_there = lane_asked(way, in_warp, (np.asarray(read_by(machine)) & np.uint32(31)).astype(np.int64), limits & 31, limits >> 8 & 31)
        if ((read_members(machine) >> other.astype(np.uint32)) & np.uint32(1) == 0).any():
            raise PtxError("a value of a lane that is not in the mask")
        everyone = np.zeros(machine.n, DTYPES[kind])
        everyone[lanes] = read(machine)
        write(machine, everyone[lanes - in_warp + other])
        write_there(machine, np.broadcast_to(is_there, len(lanes)))

    return run, read_members


def make_step(instruction, labels):
    """The step of an instruction, or an error that names what is not known."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in ("bra", "bra.uni"):
        return Step(instruction, None, "branch", labels[operands[0].name])
    if opcode in ("ret", "exit"):
        return Step(instruction, None, "end")
    if opcode in ("bar.sync", "barrier.sync", "barrier.sync.aligned") and operands == (Number(0),):
        return Step(instruction, None, "barrier")
    if opcode == "bar.warp.sync":
        return Step(instruction, (None, reader(operands[0], "u32")), "warp")
    if opcode.startswith("shfl.sync."):
        return Step(instruction, shuffle(instruction), "warp")
    if opcode.startswith("cvta.to."):
        return Step(instruction, convert_address(instruction))
    name = opcode.partition(".")[0]
    return Step(instruction, {"ld": load, "st": store, "mov": move}.get(name, compute)(instruction))


def convert_address(instruction):
    """Generic addresses are those of global memory here, so a conversion to them changes nothing."""
    if instruction.opcode != "cvta.to.global.u64":
        raise PtxError(f"this conversion of an address is not known: {instruction.opcode}")
    to, source = instruction.operands
    read, write = reader(source, "u64"), writer(to, "u64")
    return lambda machine: write(machine, read(machine))
