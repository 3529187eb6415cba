"""The launcher of a bundle: which torch it takes, and what it says where there is none. Pythons and programs are stand-ins."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

LAUNCHER = pathlib.Path(__file__).parents[2] / "packaging" / "bundle_run.sh"


class Bundle:
    """A folder whose `lancet` prints the library path and its arguments, and a site folder for a made-up torch."""

    def __init__(self, folder):
        self.bundle = folder / "a bundle"
        self.site = folder / "site"
        self.site.mkdir()
        (self.bundle / "bin").mkdir(parents=True)
        shutil.copy(LAUNCHER, self.bundle / "run.sh")
        program = self.bundle / "bin" / "lancet"
        program.write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH"\nprintf "<%s>" "$@"\nexit 5\n')
        program.chmod(0o755)
        self.python = folder / "python"
        # -S: the environment's own torch must not be found
        self.python.write_text(f'#!/bin/sh\nPYTHONPATH="{self.site}" exec "{sys.executable}" -S "$@"\n')
        self.python.chmod(0o755)

    def add_torch(self, version, cuda=True):
        torch = self.site / "torch"
        (torch / "lib").mkdir(parents=True)
        (torch / "__init__.py").write_text("raise SystemExit('imported')")
        (torch / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\ndebug = False\n")
        if cuda:
            (torch / "lib" / "libtorch_cuda.so").touch()
        (self.site / "nvidia" / "cu13" / "lib").mkdir(parents=True)
        return torch

    def run(self, *arguments, python=None):
        environment = {**os.environ, "LANCET_PYTHON": str(python or self.python), "LD_LIBRARY_PATH": "/already/there"}
        return subprocess.run([str(self.bundle / "run.sh"), *arguments], capture_output=True, text=True, env=environment)


@pytest.fixture
def bundle(tmp_path):
    return Bundle(tmp_path)


def test_finds_the_libraries_of_torch(bundle):
    torch = bundle.add_torch("2.11.0+cu130")
    done = bundle.run("lancet", "edit", "a job.yaml", "")
    assert done.returncode == 5, done.stderr
    path, arguments = done.stdout.splitlines()
    assert path.split(":") == [f"{torch}/lib", f"{bundle.site}/nvidia/cu13/lib", f"{bundle.bundle}/lib", "/already/there"]
    assert arguments == "<edit><a job.yaml><>"


@pytest.mark.parametrize("version", ["2.10.1", "2.11.1", "2.1.0"])
def test_refuses_another_version(bundle, version):
    bundle.add_torch(version)
    done = bundle.run("lancet")
    assert done.returncode == 2
    assert f"torch {version}" in done.stderr and "expected 2.11.0" in done.stderr and "pip install torch==2.11.0" in done.stderr


def test_refuses_a_wheel_without_cuda(bundle):
    bundle.add_torch("2.11.0+cpu", cuda=False)
    done = bundle.run("lancet")
    assert done.returncode == 2 and "for CPUs only" in done.stderr


def test_says_that_torch_is_missing(bundle):
    done = bundle.run("lancet")
    assert done.returncode == 2 and "has no torch" in done.stderr and "LANCET_PYTHON=" in done.stderr


def test_says_that_python_is_missing(bundle):
    done = bundle.run("lancet", python="/no/such/python")
    assert done.returncode == 2 and "/no/such/python" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["rm"], ["../bin/lancet"]])
def test_runs_nothing_else(bundle, arguments):
    bundle.add_torch("2.11.0")
    done = bundle.run(*arguments)
    assert done.returncode == 2 and "usage" in done.stderr
