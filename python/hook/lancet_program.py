"""The program `lancet`, which the wheel brings along. Beside the package and not in it: importing the package imports torch, which
takes longer than most commands do."""

import importlib.util
import os
import pathlib
import sys


def _folders(name: str) -> list[pathlib.Path]:
    """Of a package that is installed, without importing it."""
    spec = importlib.util.find_spec(name)
    return [] if spec is None else [pathlib.Path(folder) for folder in spec.submodule_search_locations or ()]


def main() -> None:
    """Becomes the program."""
    program = next((folder / "bin" / "lancet" for folder in _folders("lancet") if (folder / "bin" / "lancet").exists()), None)
    if program is None:
        sys.exit("lancet: error: the package lancet lies nowhere on Python's path with its program: pip install lancet again")
    libraries = [folder / "lib" for folder in _folders("torch") if (folder / "lib").is_dir()]
    if not libraries:
        sys.exit("lancet: error: needs torch, whose libraries it computes with: pip install torch==2.11.0")
    if not (program.parents[2] / "torch" / "lib").exists():  # where the program looks by itself
        path = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = f"{libraries[0]}:{path}" if path else str(libraries[0])
    os.execv(program, ["lancet", *sys.argv[1:]])
