"""What a GPU's binary of our kernels uses and how it reaches memory, as NVIDIA's tools say. Triton's wheel, which torch's asks for, brings them."""
import importlib.util
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Resources:
    registers: int
    stack: int
    local: int
    shared: int


def tool(name):
    found = importlib.util.find_spec("triton")
    program = Path(found.submodule_search_locations[0]) / "backends" / "nvidia" / "bin" / name if found else Path(name)
    if not program.exists():
        pytest.skip(f"there is no {name}: the wheel triton, which torch asks for, brings it")
    return program


def output_of(name, option, file):
    return subprocess.run([tool(name), option, file], capture_output=True, text=True, check=True, timeout=60).stdout


def resources_of(file):
    """Kernel -> Resources."""
    text = output_of("cuobjdump", "-res-usage", file)
    rows = re.findall(r"Function (\w+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", text)
    return {name: Resources(int(registers), int(stack), int(local), int(shared)) for name, registers, stack, shared, local in rows}


def instructions_of(file):
    """Kernel -> opcodes with their modifiers, such as "LDG.E.128.CONSTANT", in the order in which they lie there."""
    text = output_of("nvdisasm", "-c", file)
    kernels = {}
    for body in re.split(r"^\s*\.section\s+\.text\.", text, flags=re.M)[1:]:
        kernels[re.match(r"\w+", body)[0]] = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", body, re.M)
    return kernels


def accesses(opcodes):
    """(load or store, bits at once) of each access to global memory."""
    found = []
    for opcode in opcodes:
        name, *words = opcode.split(".")
        if name in ("LDG", "STG"):
            widths = [int(re.sub(r"\D", "", word)) for word in words if re.fullmatch(r"[US]?(8|16|64|128|256)", word)]
            found.append(("load" if name == "LDG" else "store", widths[0] if widths else 32))
    return found
