"""Our kernels, as NVRTC compiles them for three generations of GPUs, run without one: each type, launches of all shapes, formulas as oracles."""
import pytest
from kernel_rows import ROWS
from kernel_sources import ARCHITECTURES, KERNELS, TYPES, compiler_options, kernel_names
from running import program_of, run_launches
from stored_types import STORED_TYPES


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("name", kernel_names())
def test_a_kernel_computes_its_formula(name, type_name, architecture):
    program = program_of(name, architecture, type_name)
    executed = set().union(*(machine.visited for machine in run_launches(program, name, type_name)))
    assert len(executed) > 20
    # what no launch of the row comes to is not tested; arithmetic apart, which may be for numbers that are none
    missed = [step.instruction for at, step in enumerate(program.steps) if at not in executed]
    missed = [f"line {each.line}: {each.text}" for each in missed if each.opcode.startswith(("ld.", "st.", "bar", "shfl"))]
    assert not missed, f"{name}: launches of tests/ptx/kernel_rows.py reach no"


def test_every_kernel_and_type_has_a_row():
    assert sorted(ROWS) == sorted(kernel_names()) and set(STORED_TYPES) == set(TYPES)
    with pytest.raises(LookupError, match=r"kernel unheard_of has no row: add a function .*kernel_rows.py"):
        run_launches(None, "unheard_of", "f32")


def test_kernels_are_compiled_as_the_program_does():
    assert compiler_options(90, "bf16") == [
        "--gpu-architecture=sm_90", "--std=c++17", "--device-as-default-execution-space",
        "--define-macro=LANCET_KERNEL_NAME=bf16", "--define-macro=LANCET_KERNEL_TYPE=lancet::Bf16",
    ]  # fmt: skip
    assert sorted(kernel_names()) == sorted(kernel_names_of_the_program())


def kernel_names_of_the_program():
    listed = (KERNELS / "gpu_kernels.cpp").read_text().partition("kKernelNames[] = {")[2].partition("}")[0]
    return [word.strip().strip('"') for word in listed.split(",")]
