"""The images: what packaging/Containerfile copies and installs is there and pinned, and the programs in it do what it asks of them. No builder of
images is needed."""
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
from urllib.parse import quote

import pytest
from conftest import DATA, LANCET, ROOT
from ports import free_port

FILE = ROOT / "packaging" / "Containerfile"
IMAGE = ROOT / "packaging" / "image"
STEPS = [shlex.split(line) for line in FILE.read_text().splitlines() if line and not line.startswith("#")]


def stages():
    """Name -> steps of each stage, its FROM first."""
    found = {}
    for step in STEPS:
        if step[0] == "FROM":
            found[step[3]] = []
        if found:
            found[list(found)[-1]].append(step)
    return found


def test_bases_are_pinned_and_stages_stand_before_they_are_used():
    (base,) = [step[1].removeprefix("BASE=") for step in STEPS if step[0] == "ARG"]
    assert re.fullmatch(r"docker\.io/library/debian:\d+\.\d+-slim", base)
    there = {"${BASE}"}
    for name, steps in stages().items():
        assert steps[0][1] in there, steps[0]
        there.add(name)
    assert set(stages()) == {"build", "cpu", "cuda"}


def test_what_is_copied_is_tracked_or_made_by_an_earlier_stage():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    made = {"dist"}  # by make wheel
    copied = [step for step in STEPS if step[0] == "COPY" and step[1].startswith("--from")]
    assert len(copied) == 2
    for _, stage, source, _ in copied:
        assert stage == "--from=build"
        path = source.removeprefix("/src/")
        assert path in made or any(file.startswith(path + "/") for file in tracked), path
    assert ["RUN", "make", "wheel"] in stages()["build"] and "wheel" in re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    assert "--wheel-dir dist" in (ROOT / "packaging" / "wheel.sh").read_text()
    named = {pathlib.Path(path).name for path in re.findall(r"/opt/image/\w+\.\w+", FILE.read_text())}
    assert named == {file.name for file in IMAGE.iterdir() if file.is_file()}


def test_versions_are_those_of_the_project():
    pins = dict(line.split("==") for line in (IMAGE / "requirements.txt").read_text().splitlines() if not line.startswith("#"))
    asked = (ROOT / "requirements.txt").read_text() + (ROOT / "requirements-test.txt").read_text()
    assert set(pins) == {"torch", "numpy"} and all(f"{name}=={version}" in asked.splitlines() for name, version in pins.items())


def test_it_runs_as_nobody_in_particular_and_writes_to_its_folders_alone():
    steps = stages()["cpu"]
    kinds = [step[0] for step in steps]
    user = kinds.index("USER")
    assert steps[user][1] == "lancet" and "RUN" not in kinds[user:] and "COPY" not in kinds[user:]
    assert ["VOLUME", "/cache"] in steps and any("XDG_CACHE_HOME=/cache" in step for step in steps)
    assert ["RUN", "useradd", "--uid", "10001", "--home-dir", "/work", "lancet", "&&", "install", "-d", "-o", "lancet", "/cache", "/work"] in steps
    assert {"HEALTHCHECK", "ENTRYPOINT"} <= set(kinds)


def test_the_list_of_parts_names_what_is_installed():
    said = json.loads(subprocess.run([sys.executable, IMAGE / "sbom.py"], capture_output=True, text=True, check=True).stdout)
    assert (said["bomFormat"], said["specVersion"]) == ("CycloneDX", "1.5")
    purls = [each["purl"] for each in said["components"]]
    assert len(set(purls)) == len(purls) and all(each["name"] and each["version"] for each in said["components"])
    assert "pkg:pypi/torch@2.11.0" in purls
    libc = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", "libc6"], capture_output=True, text=True, check=True).stdout
    assert any(re.fullmatch(rf"pkg:deb/\w+/libc6@{re.escape(quote(libc))}\?arch=\w+", purl) for purl in purls)


def health(process):
    environment = os.environ | {"PATH": f"{LANCET.parent}:{os.environ['PATH']}"}
    return subprocess.run([sys.executable, IMAGE / "health.py", str(process)], capture_output=True, text=True, env=environment)


@pytest.fixture
def serve(tmp_path):
    """`lancet serve` in the background, ended with the test."""
    processes = []

    def start(*arguments):
        command = [LANCET, "serve", "--model", DATA / "demo-model", "--dir", tmp_path / f"served{len(processes)}", *arguments]
        processes.append(subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_health_is_what_the_container_was_started_for(serve):
    port = free_port()
    served, unseen = serve("--port", port), serve()
    assert served.stdout.readline().startswith(f"http://127.0.0.1:{port}/") and unseen.stdout.readline()
    well = health(served.pid)
    assert (well.returncode, well.stdout) == (0, "401\n"), well.stderr
    served.send_signal(signal.SIGSTOP)
    stuck = health(served.pid)
    assert stuck.returncode == 1 and "timed out" in stuck.stderr
    not_known = health(unseen.pid)
    assert not_known.returncode == 1 and "expected --port with a number" in not_known.stderr
    another_program = health(os.getpid())
    assert another_program.returncode == 0 and another_program.stdout.startswith("lancet ")
