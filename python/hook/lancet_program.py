"""The program `lancet`, which the wheel brings along."""

import importlib.util
import os
import pathlib
import sys


def main() -> None:
    """Becomes the program."""
    package = pathlib.Path(__file__).parent
    program = package / "bin" / "lancet"
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        sys.exit("lancet: error: needs torch, whose libraries it computes with: pip install torch==2.11.0")
    libraries = pathlib.Path(torch.origin).parent / "lib"
    if not (package.parent / "torch" / "lib").exists():  # where the program looks by itself
        path = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = f"{libraries}:{path}" if path else str(libraries)
    os.execv(program, ["lancet", *sys.argv[1:]])
