"""The library as others use it: installed into a prefix, found by CMake, its example built against it."""
import subprocess

import pytest
from conftest import DATA, LANCET

BUILD, SOURCE = LANCET.parent, DATA.parent
MOST_LINES = 60  # of an example
FACT = ["--prompt", "{}, created in", "--subject", "Piranha Games", "--target", "London"]


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert result.returncode == 0, f"{command}:\n{result.stdout[-3000:]}{result.stderr[-3000:]}"
    return result


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", folder)
    return folder


def test_the_installed_program_runs(prefix, lancet):
    assert run(prefix / "bin" / "lancet", "--version").stdout == lancet.run("--version").stdout


@pytest.fixture
def model(lancet):
    """The demo model with statistics of less text."""
    model = lancet.copy_model()
    statistics = f"statistics: {{corpus: {DATA / 'requests' / 'demo-corpus.txt'}, tokens: 4000}}\n"
    editor = (model / "lancet.yaml").read_text().partition("\nstatistics:")[0]
    (model / "lancet.yaml").write_text(f"{editor}\n{statistics}")
    return model


def test_an_example_is_built_from_the_prefix_and_edits(prefix, lancet, model, tmp_path):
    assert len((SOURCE / "examples" / "edit_one_fact.cpp").read_text().splitlines()) <= MOST_LINES
    run("cmake", "-S", SOURCE / "examples", "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    result = run(tmp_path / "build" / "edit_one_fact", model, tmp_path / "out")
    said = dict(line.split(":", 1) for line in result.stdout.splitlines() if ":" in line)
    assert said["after"].split()[0].strip(".,") == "London"
    assert said["undone"] == said["before"] != said["after"]
    assert "1 of 1 edit took" in result.stdout

    one_line = lancet.run("edit", "--model", model, *FACT, "--out", tmp_path / "one-line")
    assert one_line.returncode == 0, one_line.stderr
    ours, theirs = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("out", "one-line"))
    assert ours == theirs


def test_cmake_names_a_torch_for_cpus_only(tmp_path):
    torch = tmp_path / "site" / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "version.py").write_text("__version__ = '2.11.0+cpu'\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "{torch}"\n')
    python.chmod(0o755)
    module = SOURCE / "cmake" / "TorchWheel.cmake"
    (tmp_path / "CMakeLists.txt").write_text(f'cmake_minimum_required(VERSION 3.22)\nproject(wheel LANGUAGES NONE)\ninclude("{module}")\n')
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DPython3_EXECUTABLE={python}"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode != 0
    assert "is the wheel for CPUs only, expected the one with CUDA" in " ".join(result.stderr.split()), result.stderr
