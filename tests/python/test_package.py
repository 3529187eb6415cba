"""The package beside torch and transformers: orders of import, its stub, the program, what is installed where."""
import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import sysconfig

import lancet
import pytest
from conftest import BUILD, DATA, LIMIT_S, ROOT, run_python
from lancet import _lancet

USE = """
session = lancet.open({model!r}, progress=False, threads=1)
print(session.generate("a", tokens=2) is not None, torch.ones(2).sum().item(), transformers.__version__ is not None)
"""


@pytest.mark.parametrize("order", ["torch, transformers, lancet", "lancet, torch, transformers", "transformers, lancet, torch", "numpy, sentencepiece, tokenizers, lancet, torch, transformers"])
def test_import_orders(order, tiny, tmp_path):
    assert run_python(f"import {order}\n" + USE.format(model=str(tiny)), tmp_path).strip() == "True 2.0 True"


def test_one_libtorch(tiny, tmp_path):
    text = "import torch, lancet\nprint({line.split()[-1] for line in open('/proc/self/maps') if 'libtorch_cpu' in line or 'libgomp' in line})"
    found = ast.literal_eval(run_python(text, tmp_path))
    assert len([path for path in found if "libtorch_cpu" in path]) == 1 and len([path for path in found if "libgomp" in path]) == 1


def test_another_torch_is_refused(tmp_path):
    text = "import torch\ntorch.__version__ = '2.4.1+cpu'\nimport lancet"
    assert "lancet was built with torch 2.11.0, and this is torch 2.4.1" in run_python(text, tmp_path, fails=True)


def test_without_torch(tmp_path):
    text = "import sys\nsys.modules['torch'] = None\nimport lancet"
    assert "pip install torch==2.11.0" in run_python(text, tmp_path, fails=True)


def test_the_import_takes_the_time_of_torchs():
    """What comes on top is lancet's own files, and of Python's library what reports as pages need."""
    code = """
import sys, time
begun = time.perf_counter(); import torch; torch_s = time.perf_counter() - begun
before = set(sys.modules)
begun = time.perf_counter(); import lancet; print(torch_s, time.perf_counter() - begun)
print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))
"""
    times, modules = run_python(code, ROOT).splitlines()
    torch_s, more_s = map(float, times.split())
    assert set(modules.split()) <= {"lancet", "html", "typing_extensions"} | set(sys.stdlib_module_names)
    assert not set(modules.split()) & {"numpy", "pandas", "transformers", "tqdm", "matplotlib", "huggingface_hub"}
    assert more_s < 0.2 * torch_s + 0.2, times


def test_the_stub_names_what_the_module_has():
    stub = ast.parse((BUILD / "python" / "lancet" / "_lancet.pyi").read_text())
    names = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert set(names) == {name for name, value in vars(_lancet).items() if not name.startswith("__") and callable(value)}
    for name, node in names.items():
        if isinstance(node, ast.ClassDef):
            told = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            assert told - {"__init__"} == {each for each in vars(getattr(_lancet, name)) if not each.startswith("__")}, name


def test_everything_public_is_documented():
    """That it is typed, test_types.py holds."""
    for name in [*lancet.__all__, "open"]:
        value = getattr(lancet, name)
        assert name.startswith("__") or value.__doc__, name
        for member, each in vars(value).items() if inspect.isclass(value) else []:
            if not member.startswith("_") and isinstance(each, (property, type(inspect.isfunction))):
                assert each.__doc__, f"{name}.{member}"


def test_help_begins_with_a_tutorial_whose_code_runs(tmp_path, data):
    told = lancet.__doc__
    assert len(told.splitlines()) <= 40
    code = "\n".join(line[4:] for line in told.splitlines() if line.startswith("    "))
    (tmp_path / "data").symlink_to(data)
    out = run_python("import lancet\n" + code, tmp_path, environment={"PYTHONWARNINGS": "ignore"})
    assert "True None" in out and "London" in out
    assert (tmp_path / "edited" / "model.safetensors").exists() and (tmp_path / "adapter" / "adapter_config.json").exists() and (tmp_path / "edits").is_dir()


def test_the_program_comes_along(tmp_path):
    command = [sys.executable, "-c", "from lancet_program import main; main()", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path)
    assert done.stdout == f"lancet {lancet.__version__}\n", done.stderr


def test_the_program_starts_without_importing_torch(tmp_path):
    """Which takes two seconds."""
    text = "import os, sys\nos.execv = lambda *_: print(sorted({'torch', 'lancet'} & set(sys.modules)))\nimport lancet_program\nlancet_program.main()"
    assert run_python(text, tmp_path) == "[]\n"


@pytest.fixture
def installed(tmp_path):
    """The command of an environment of its own, as pip leaves it there: with the hooks that Python reads at its start. torch is the tests'."""
    scripts = pytest.importorskip("pip._vendor.distlib.scripts")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True, timeout=LIMIT_S)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    shutil.copytree(BUILD / "python" / "lancet", site / "lancet", copy_function=lambda link, copy: os.symlink(os.path.realpath(link), copy))
    for hook in (ROOT / "python" / "hook").iterdir():
        shutil.copy(hook, site)
    (site / "torch.pth").write_text(sysconfig.get_path("purelib"))
    maker = scripts.ScriptMaker(None, str(tmp_path / "venv" / "bin"))
    maker.executable = str(tmp_path / "venv" / "bin" / "python")
    maker.variants = {""}
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    for name, function in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"].items():
        maker.make(f"{name} = {function}")
    return tmp_path / "venv" / "bin"


def test_the_installed_command_is_the_program_and_imports_no_torch(installed, tmp_path):
    order = ["inspect", ROOT / "data" / "demo-model"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [installed / "python", "-X", "importtime", installed / "lancet", *order]  # importtime: Python names what it imports on stderr
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path, env=environment)
    built = subprocess.run([BUILD / "lancet", *order], capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, built.stdout), done.stderr
    imported = set(re.findall(r"^import time: .*\| *([\w.]+)$", done.stderr, re.M))
    assert {"lancet_program", "lancet_lm_eval_hook"} <= imported
    assert {name for name in imported if name.split(".")[0] in ("torch", "numpy", "lancet")} == set()


def test_what_the_package_needs_is_asked_for():
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {re.match(r"\w+", each)[0] for each in project["dependencies"]} == {"torch", "numpy"}
    assert project["scripts"] == {"lancet": "lancet_program:main"} and (ROOT / "python" / "hook" / "lancet_program.py").exists()


def test_progress_without_tqdm_is_lines(tiny, tmp_path):
    text = f"import sys\nsys.modules['tqdm'] = sys.modules['tqdm.auto'] = None\nimport lancet\nlancet.open({str(tiny)!r}, progress=True)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path, env=os.environ)
    assert done.returncode == 0 and "loading" in done.stderr and "MB" in done.stderr


def test_progress_by_tqdm(tiny, tmp_path):
    text = f"import lancet\nlancet.open({str(tiny)!r}, progress=True)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path)
    assert done.returncode == 0 and "loading:   0%|" in done.stderr
