"""What the command-line tests share: running lancet, and a small job to spoil. Jobs are written as JSON, which lancet reads too."""
import atexit
import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from program_server import KEPT_MEMORY, ProgramServer, can_be_ordered

ROOT = pathlib.Path(__file__).parents[2]
DATA = ROOT / "data"
LANCET = pathlib.Path(os.environ.get("LANCET_BUILD", ROOT / "build")) / "lancet"

SMALL_JOB = {
    "model": str(DATA / "demo-model"),
    "requests": {"path": str(DATA / "requests" / "demo.json"), "limit": 3},
    "editor": {
        "method": "memit",
        "layers": [0, 1],
        "covariance_weight": 20,
        "values": {"steps": 20, "lr": 0.8, "clamp": 4.0},
        "contexts": ["{}", "The answer is known. {}"],
    },
    "statistics": {"corpus": str(DATA / "requests" / "demo-corpus.txt"), "tokens": 4000},
    "evaluate": ["efficacy"],
    "run": {"devices": "cpu", "dtype": "f32"},
}


CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


LIMIT_S = 300


def run_ok(result):
    assert result.returncode == 0, result.stderr
    return result


_server = None


def server():
    """One for the environment as it is: tests change it, and so do modules that they import."""
    global _server
    environment = KEPT_MEMORY | {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    if _server is None or _server.environment != environment:
        end_server()
        _server = ProgramServer(LANCET, environment)
    return _server


@atexit.register
def end_server():
    if _server is not None:
        _server.end()


def run_lancet(folder, *arguments):
    """Runs the program in `folder`, where no process of its own is needed."""
    command = [str(LANCET), *map(str, arguments)]
    if not can_be_ordered(command):
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=LIMIT_S)
    return subprocess.CompletedProcess(command, *server().run(folder, command[1:], limit_s=LIMIT_S))


def change_config(model, **changes):
    path = model / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(config))


class Lancet:
    """Runs the program; jobs live in a folder of the test's own, and so does the statistics cache where no other is named."""

    def __init__(self, folder, cache=None):
        self.folder = folder
        self.out = folder / "out"
        self.cache = cache or folder / "cache"

    def job(self, **changes):
        """The small job with dotted keys changed; None removes a key. `editor__values__lr=1` stands for editor.values.lr."""
        job = copy.deepcopy(SMALL_JOB)
        job["output"] = {"dir": str(self.out)}
        job["statistics"]["cache"] = str(self.cache)
        for dotted, value in changes.items():
            *parents, key = dotted.split("__")
            place = job
            for parent in parents:
                place = place.setdefault(parent, {})
            if value is None:
                place.pop(key, None)
            else:
                place[key] = value
        return job

    def write(self, job, name="job.json"):
        path = self.folder / name
        path.write_text(job if isinstance(job, str) else json.dumps(job))
        return path

    def run(self, *arguments):
        return run_lancet(self.folder, *arguments)

    def edit(self, job, *arguments):
        return self.run("edit", self.write(job), *arguments)

    def copy_model(self, name="model"):
        """A copy of the demo model, to damage."""
        return pathlib.Path(shutil.copytree(DATA / "demo-model", self.folder / name))


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory):
    """Of statistics that tests need and do not look at: each is made once."""
    return tmp_path_factory.mktemp("statistics") / "cache"


@pytest.fixture
def lancet(tmp_path, shared_cache):
    return Lancet(tmp_path, shared_cache)


@pytest.fixture
def lancet_alone(tmp_path):
    """With a cache of its own, which is empty."""
    return Lancet(tmp_path)


@pytest.fixture(scope="session")
def shallow(tmp_path_factory):
    """The demo model's first two layers, where what they know does not matter."""
    from safetensors.torch import load_file, save_file

    folder = tmp_path_factory.mktemp("shallow") / "model"
    shutil.copytree(DATA / "demo-model", folder)
    change_config(folder, num_hidden_layers=2)
    tensors = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if not re.match(r"model\.layers\.[2-9]", name)}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
