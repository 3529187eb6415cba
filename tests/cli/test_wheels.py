"""A wheel in an environment of its own: installed by pip, and no compiler or library of Debian's is asked. A whole build, so with
LANCET_TEST_FULL=1 (make test-full) alone."""
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest
from conftest import DATA, ROOT
from test_image import IMAGE, stages

FIRST_EDIT = """
import lancet

with lancet.open({model!r}) as session:
    edit = session.edit([{{"prompt": "{{}}, created in", "subject": "Piranha Games", "target": "London"}}])
    print(edit.requests[0].success, session.generate("Piranha Games, created in", tokens=4))
"""
in_full = pytest.mark.skipif(not os.environ.get("LANCET_TEST_FULL"), reason="takes minutes: make test-full")
TORCHS = re.compile(r"lib(torch|c10|gomp)")  # what its wheel brings


@pytest.fixture(scope="module")
def wheel():
    subprocess.run([ROOT / "packaging" / "wheel.sh", sys.executable], check=True)
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}" if sys.version_info < (3, 12) else "abi3"
    return max((path for path in (ROOT / "dist").glob("lancet-*.whl") if tag in path.name), key=lambda path: path.stat().st_mtime)


@in_full
def test_it_runs_on_the_platform_that_it_names(wheel):
    """Apart from torch's libraries."""
    tools = ROOT / "build" / "wheel-tools" / "bin"
    shown = json.loads(subprocess.run([tools / "python", "-m", "auditwheel", "show", "--json", wheel], capture_output=True, text=True, check=True).stdout)
    (platform,) = re.findall(r"-(manylinux_\d+_\d+_x86_64)\.whl$", wheel.name)
    assert shown["sym_tag"] == platform
    assert [name for name in shown["policy_upgrades"][platform]["libs_to_eliminate"] if not TORCHS.match(name)] == []


@in_full
def test_from_pip_to_the_first_edit(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "torch.pth").write_text(sysconfig.get_path("purelib"))  # torch of the tests' environment
    python = tmp_path / "venv" / "bin" / "python"
    environment = {"PATH": str(tmp_path / "venv" / "bin"), "HOME": str(tmp_path)}
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel], check=True, env=environment)
    done = subprocess.run([python, "-c", FIRST_EDIT.format(model=str(DATA / "demo-model"))], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "True" in done.stdout and "London" in done.stdout
    program = subprocess.run([tmp_path / "venv" / "bin" / "lancet", "--version"], capture_output=True, text=True, env=environment)
    assert program.returncode == 0 and program.stdout.startswith("lancet "), program.stderr


@in_full
def test_the_steps_of_an_image_make_its_program(wheel, tmp_path):
    """Those that Debian does not do, in a folder for /opt. pip finds torch there already."""
    opt = tmp_path / "opt"
    shutil.copytree(IMAGE, opt / "image")
    (opt / "image" / "dist").mkdir()
    shutil.copy(wheel, opt / "image" / "dist")
    commands = [command.strip() for step in stages()["cpu"] if step[0] == "RUN" for command in " ".join(step[1:]).split("&&")]
    mine = [command for command in commands if not re.match(r"apt-get|useradd|install |rm -rf /var", command)]
    assert len(mine) == 4
    for command in mine:
        done = subprocess.run(command.replace("/opt/", f"{opt}/").replace("python3 ", f"{sys.executable} "), shell=True, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if "-m venv" in command:
            (site,) = (opt / "lancet").glob("lib/python*/site-packages")
            (site / "torch.pth").write_text(sysconfig.get_path("purelib"))
    assert subprocess.run([opt / "lancet" / "bin" / "lancet", "--version"], capture_output=True, text=True).stdout.startswith("lancet ")
    parts = json.loads((opt / "lancet" / "sbom.cdx.json").read_text())["components"]
    assert any(part["name"] == "lancet" for part in parts) and not (opt / "image" / "dist").exists()
