"""sentencepiece and torch's libc10 both have a variable FLAGS_minloglevel, one of 64 bytes, the other of 4.

Where libc10 is found first, sentencepiece writes over the flags that follow libc10's, and memory that could not be had ends the process
in place of an error. So each program and module of ours names sentencepiece first.
"""
import re
import shutil
import subprocess

import pytest
from conftest import LANCET

BUILD = LANCET.parent

PROGRAMS = [LANCET, *(BUILD / "tests").glob("*_tests"), *(BUILD / "python/lancet").glob("_lancet*.so")]


def needed(program):
    readelf = shutil.which("readelf")
    assert readelf, "binutils come with the compiler"
    text = subprocess.run([readelf, "-d", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(lib\w[\w.+-]*)\]", text)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_sentencepiece_is_loaded_before_torch(program):
    libraries = needed(program)
    places = {name: place for place, library in enumerate(libraries) for name in ("libsentencepiece", "libc10.") if library.startswith(name)}
    if "libc10." in places and "libsentencepiece" in places:
        assert places["libsentencepiece"] < places["libc10."], libraries
