"""Edits in llama.cpp's own server, which `make setup-full` builds: it says what was edited as long as the edits stand there, and is measured as
lancet's model in memory is."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

import pytest
from conftest import DATA, ROOT, Lancet
from ports import free_port

LLAMA = ROOT / ".venv" / "llama.cpp"
SERVER, CONVERTER = LLAMA / "build" / "bin" / "llama-server", LLAMA / "source" / "convert_hf_to_gguf.py"
FACTS, COMMAND_LINE, LIMIT_S = 20, 2, 60

if not (LLAMA / ".built").is_file():
    assert not os.environ.get("LANCET_TEST_FULL"), f"llama.cpp's server is not in {LLAMA}: make setup-full"
    pytest.skip("llama.cpp's server is not built: make setup-full", allow_module_level=True)


class LlamaServer:
    def __init__(self, model, log, *arguments):
        port = free_port()
        self.url, self.log = f"http://127.0.0.1:{port}", log
        command = [SERVER, "--model", model, "--host", "127.0.0.1", "--port", str(port), "--parallel", "1", "--threads", "1", *arguments]
        with open(log, "w") as out:
            self.process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=out)
        self.wait()

    def wait(self):
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return urllib.request.urlopen(self.url + "/health", timeout=1)
            except OSError:
                time.sleep(0.05)
        raise AssertionError(f"llama.cpp's server does not answer:\n{self.log.read_text()[-2000:]}")

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    made = Lancet(tmp_path_factory.mktemp("pushed"))
    result = made.edit(made.job(requests__limit=FACTS, evaluate=["efficacy", "generation"]))
    assert result.returncode == 0, result.stderr
    return made


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The demo model in llama.cpp's format, by llama.cpp's own program."""
    path = tmp_path_factory.mktemp("gguf") / "demo.gguf"
    done = subprocess.run([sys.executable, CONVERTER, DATA / "demo-model", "--outfile", path, "--outtype", "f32"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def serve(base, tmp_path):
    servers = []

    def start(*arguments):
        servers.append(LlamaServer(base, tmp_path / f"server{len(servers)}.log", *arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.end()


def measured(lancet, *arguments):
    job = lancet.write(lancet.job(requests__limit=FACTS, evaluate=["generation"], output=None), "measure.json")
    result = lancet.run("eval", job, *arguments, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    return report["metrics"]["generation_exact"]["value"], [row["continuation"] for row in report["requests"]]


def test_a_real_server_says_what_was_edited_until_it_is_undone(edited, serve):
    before, after = measured(edited), measured(edited, "--set", f"model={edited.out}")
    first = serve()
    refused = edited.run("push", edited.out, "--to", first.url)
    assert refused.returncode == COMMAND_LINE, refused.stderr
    words = re.search(r"start it with (--lora-scaled \S+:0), then push again", refused.stderr)[1].split()
    first.end()

    server = serve(*words)
    assert measured(edited, "--server", server.url) == before
    pushed = edited.run("push", edited.out, "--to", server.url, "--asked", FACTS, "--accept", f"efficacy={after[0]}", "--json")
    assert pushed.returncode == 0, pushed.stderr
    report = json.loads(pushed.stdout)
    print(f"\nfrom push to the answers that were checked: {report['seconds']:.2f} s; {report['metrics']}")
    assert report["metrics"]["efficacy"]["prompts"] == FACTS and report["metrics"]["efficacy"]["before"] == before[0]
    assert measured(edited, "--server", server.url) == after

    undone = edited.run("push", edited.out, "--undo")
    assert undone.returncode == 0, undone.stderr
    assert measured(edited, "--server", server.url) == before
