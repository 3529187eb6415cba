"""The text of our GPUs' kernels as src/kernels has it, and what NVRTC makes of it: PTX, and the binary for one generation of GPUs.

Options, types and names are read from the sources that the program compiles by, so that both compile alike.
"""
import ctypes
import importlib.util
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
KERNELS = REPOSITORY / "src" / "kernels"
TEXT_NAME = "decoder_kernels.cu"
# PTX for 8.0 and for 9.0 is the same but for its target; make test-full takes each.
ARCHITECTURES = (80, 90, 100) if os.environ.get("LANCET_TEST_FULL") else (90,)


def kernel_types():
    """The ends of kernels' names and the types' names in the text: {"bf16": "lancet::Bf16", ...}."""
    rows = re.findall(r'\{at::\w+, "(\w+)", "([\w:]+)"\}', (KERNELS / "kernel_text.cpp").read_text())
    assert len(rows) >= 4, "kKernelTypes of kernel_text.cpp is not read"
    return dict(rows)


TYPES = kernel_types()


@cache
def kernel_files():
    """The text and its headers by their names."""
    return {file.name: file.read_text() for file in sorted((KERNELS / "device").iterdir()) if file.suffix in (".cu", ".h")}


def kernel_names(text=None):
    """Kernels that the text defines for each type: ["norm", ...]."""
    names = re.findall(r"LANCET_(?:ROW_)?KERNEL\s+lancet_(\w+?)_##NAME\(", text or kernel_files()[TEXT_NAME])
    assert names, f"{TEXT_NAME} defines no kernel `lancet_..._##NAME`"
    return names


def planted(name, *changes):
    """All files, with each (old, new) put into one of them; every old stands there exactly once."""
    text = kernel_files()[name]
    for old, new in changes:
        assert text.count(old) == 1, f"expected once in {name}, found {text.count(old)} times: a defect cannot be planted in place of\n{old}"
        text = text.replace(old, new)
    return kernel_files() | {name: text}


@cache
def nvrtc():
    name = re.search(r'kCompilerName = "([\w.]+)"', (KERNELS / "kernel_compiler.cpp").read_text())[1]
    wheels = importlib.util.find_spec("nvidia")
    found = [file for folder in (wheels.submodule_search_locations if wheels else ()) for file in Path(folder).glob(f"*/lib/{name}")]
    if not found:
        pytest.skip(f"there is no {name}: the wheel nvidia-cuda-nvrtc of torch brings it")
    return ctypes.CDLL(str(found[0]))


def compiler_options(architecture, type_name):
    """The options of compile_kernels (kernel_compiler.cpp), whose literals have to be those below."""
    body = (KERNELS / "kernel_compiler.cpp").read_text().partition("compilation.compile({")[2].partition("});")[0]
    values = {"capability": architecture, "names.name": type_name, "names.cpp": TYPES[type_name]}
    options = []
    for literal, _, value in re.findall(r'(?:cat\()?"(--[^"]+)"(, ([\w.]+)\))?', body):
        options.append(literal + (str(values[value]) if value else ""))
    assert len(options) >= 4, f"the options of compile_kernels are not read: {body}"
    return options


@dataclass(frozen=True)
class Compiled:
    ptx: str
    cubin: bytes  # of options that name a GPU ("sm_90"), else none


class Program:
    """A program of NVRTC's."""

    def __init__(self, files):
        self.library, self.handle = nvrtc(), ctypes.c_void_p()
        headers = {name: text for name, text in files.items() if name != TEXT_NAME}
        strings = ctypes.c_char_p * len(headers)
        texts, names = strings(*(text.encode() for text in headers.values())), strings(*(name.encode() for name in headers))
        self.call("CreateProgram", ctypes.byref(self.handle), files[TEXT_NAME].encode(), TEXT_NAME.encode(), len(headers), texts, names)

    def call(self, name, *arguments):
        if result := getattr(self.library, f"nvrtc{name}")(*arguments):
            self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
            log = self.output("ProgramLog") if name == "CompileProgram" else ""
            raise AssertionError(f"nvrtc{name}: {self.library.nvrtcGetErrorString(result).decode()}\n{log}")

    def output(self, what):
        size = ctypes.c_size_t()
        self.call(f"Get{what}Size", self.handle, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        self.call(f"Get{what}", self.handle, data)
        return data.raw if what == "CUBIN" else data.value.decode()

    def compile(self, options):
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        self.call("CompileProgram", self.handle, len(options), words)
        return Compiled(self.output("PTX"), self.output("CUBIN") if "=sm_" in options[0] else b"")

    def destroy(self):
        self.library.nvrtcDestroyProgram(ctypes.byref(self.handle))


def compile_files(files, options):
    program = Program(files)
    try:
        return program.compile(options)
    finally:
        program.destroy()


@cache
def compiled(architecture, type_name):
    """Our kernels as they are."""
    return compile_files(kernel_files(), compiler_options(architecture, type_name))
