"""What our kernels use on a GPU: registers, no spills, shared memory; and that those which promise it reach memory by 128 bits at a time."""
import numpy as np
import pytest
from cubin import accesses, instructions_of, resources_of
from kernel_rows import ROWS, VECTOR_SHAPES
from kernel_sources import ARCHITECTURES, TEXT_NAME, TYPES, compile_files, compiled, kernel_names
from launches import Expected, Launch
from ptx_text import read_kernels
from running import program_of
from stored_types import STORED_TYPES

MOST_REGISTERS = 64  # so that a multiprocessor, which has 65,536, holds 1,024 threads
MOST_REGISTERS_OF_ATTENTION = {"f64": 176}  # it sums up in registers: 512 threads, 372 in f64
MOST_REGISTERS_OF_NARROW_ATTENTION = 128
MOST_SHARED = 48 * 1024 // 16  # so that it holds 16 blocks, of the least that any of them has


def most_registers(name, type_name):
    if not name.startswith("lancet_ragged_"):
        return MOST_REGISTERS
    return MOST_REGISTERS_OF_ATTENTION.get(type_name, MOST_REGISTERS_OF_NARROW_ATTENTION)


@pytest.fixture(scope="module")
def cubins(tmp_path_factory):
    """(Architecture, type) -> resources and opcodes of its kernels."""
    folder, found = tmp_path_factory.mktemp("cubins"), {}
    for architecture in ARCHITECTURES:
        for type_name in TYPES:
            file = folder / f"{architecture}-{type_name}.cubin"
            file.write_bytes(compiled(architecture, type_name).cubin)
            found[architecture, type_name] = resources_of(file), instructions_of(file)
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("type_name", TYPES)
def test_kernels_fit(cubins, architecture, type_name):
    resources, opcodes = cubins[architecture, type_name]
    assert sorted(resources) == sorted(opcodes) == sorted(f"lancet_{name}_{type_name}" for name in kernel_names())
    for name, used in resources.items():
        most = most_registers(name, type_name)
        assert 8 <= used.registers <= most, f"{name} uses {used.registers} registers, at most {most}"
        assert used.stack == used.local == 0, f"{name} has {used.stack} bytes of stack, {used.local} of local memory: registers are spilled"
        spills = [opcode for opcode in opcodes[name] if opcode.startswith(("LDL", "STL"))]
        assert not spills, f"{name} spills registers: {spills}"
        assert used.shared <= MOST_SHARED, f"{name} uses {used.shared} bytes of shared memory, at most {MOST_SHARED}"
        ways = [way for way, _ in accesses(opcodes[name])]
        assert "load" in ways and "store" in ways, f"{name} reaches no memory: nvdisasm's words are read wrongly"


def vector_problems(name, type_name, buffers, machine, opcodes):
    """What keeps a kernel from its promise: instructions that the binary lacks, bytes that went otherwise when it ran."""
    for way in ("load", "store"):
        bits = {bits for each, bits in accesses(opcodes) if each == way}
        if not any(each >= 128 for each in bits):
            yield f"lancet_{name}_{type_name} has no {way} of 128 bits; it has those of {sorted(bits)}"
    for buffer in buffers:
        moved = machine.memory["global"].traffic_of(buffer)
        if not moved or min(moved) < 16:
            yield f"lancet_{name}_{type_name}: not all of {buffer} goes by 16 bytes at once (bytes at once: bytes that went so): {moved}"


def test_kernels_that_promise_it_move_128_bits_at_once(cubins):
    problems = []
    for (architecture, type_name), (_, opcodes) in cubins.items():
        for name, (shape, buffers) in VECTOR_SHAPES.items():
            program = program_of(name, architecture, type_name)
            with np.errstate(all="ignore"):  # formulas of what is no number
                launches = list(ROWS[name](STORED_TYPES[type_name], [shape]))
            for launch in launches:
                given = [buffer for buffer in buffers if buffer in launch.arguments]  # but for those that are null
                problems += vector_problems(name, type_name, given, launch.run(program), opcodes[f"lancet_{name}_{type_name}"])
    assert not problems, "\n".join(problems)


COPY = """
struct alignas(16) Four { float numbers[4]; };
extern "C" __global__ void lancet_copy_f32(const float* x, float* y, long long n) {
  const long long i = threadIdx.x;
  if (i < n / 4) reinterpret_cast<Four*>(y)[i] = reinterpret_cast<const Four*>(x)[i];
}
"""
ONE_BY_ONE = "for (int k = 0; k < 4; ++k) reinterpret_cast<Four*>(y)[i].numbers[k] = reinterpret_cast<const volatile Four*>(x)[i].numbers[k];"


def copy_problems(text, tmp_path):
    made = compile_files({TEXT_NAME: text}, ["--gpu-architecture=sm_90"])
    (tmp_path / "copy.cubin").write_bytes(made.cubin)
    kind = STORED_TYPES["f32"]
    x = np.arange(128, dtype=np.float32)
    launch = Launch(kind, 1, 32)
    launch.read("x", x)
    launch.write("y", Expected(kind.exact(x), kind.exact(x), 0))
    launch.numbers(n=np.int64(128))
    machine = launch.run(program_of("copy", 90, "f32", read_kernels(made.ptx)))
    return list(vector_problems("copy", "f32", ("x", "y"), machine, instructions_of(tmp_path / "copy.cubin")["lancet_copy_f32"]))


def test_a_missing_vector_load_is_found(tmp_path):
    assert copy_problems(COPY, tmp_path) == []
    whole = "reinterpret_cast<Four*>(y)[i] = reinterpret_cast<const Four*>(x)[i];"
    assert COPY.count(whole) == 1
    problems = copy_problems(COPY.replace(whole, ONE_BY_ONE), tmp_path)
    assert "lancet_copy_f32 has no load of 128 bits; it has those of [32]" in problems
    assert "lancet_copy_f32: not all of x goes by 16 bytes at once (bytes at once: bytes that went so): {4: 512}" in problems
