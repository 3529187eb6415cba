"""Files that are larger than anything of use, or never end: refused with words, in little time and memory."""
import gzip
import json
import os
import subprocess
import threading
import time
import zipfile

import pytest
from conftest import DATA, ENVIRONMENT, FULL, LANCET, note, write_model

MEGABYTE = 10**6
REQUEST = {"prompt": "{} was born in", "subject": "Someone", "target": "Rome"}
MOST_MEMORY = 1500 * MEGABYTE  # the program with its libraries takes 300; the cases took 6,000 and more
MOST_SECONDS = 60


def long_target(folder):
    (folder / "requests.json").write_text(json.dumps([{**REQUEST, "target": "a" * 100 * MEGABYTE}]))


def long_prompt(folder):
    (folder / "requests.json").write_text(json.dumps([{**REQUEST, "prompt": "{} " + "a " * 50 * MEGABYTE}]))


def many_keys(folder):
    (folder / "requests.json").write_text(json.dumps([REQUEST | {f"key {i}": 0 for i in range(MEGABYTE)}]))


def packed_line(folder):
    member = gzip.compress(b"a" * 30 * MEGABYTE)
    (folder / "corpus.txt.gz").write_bytes(member * 100)
    return {"statistics": {"corpus": "corpus.txt.gz", "cache": "cache"}}


def huge(name, size):
    """A file of zeros that takes no disk."""

    def make(folder):
        (folder / name).touch()
        os.truncate(folder / name, size)

    return make


def pipe(name):
    """Nobody ever writes to it."""

    def make(folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return make


def deep_pickle(folder):
    with zipfile.ZipFile(folder / "projections.pt", "w") as archive:
        archive.writestr("projections/data.pkl", b"\x80\x02" + b"(" * MEGABYTE + b"t" * MEGABYTE + b".")
    return {"editor": {"method": "alphaedit", "layers": [0, 1]}, "statistics": {"import_null_space": "projections.pt"}}


CASES = {
    "a target of 100 MB": (long_target, 2, "requests.json"),
    "a prompt of 100 MB": (long_prompt, 2, "requests.json"),
    "a record of a million keys": (many_keys, 2, "an object of more than 65536 keys"),
    "3 MB that unpack to a line of 3 GB": (packed_line, 2, "corpus.txt.gz"),
    "a job file of 1 GB": (huge("job.json", 10**9), 2, "job.json"),
    "a request file of 10 GB": (huge("requests.json", 10**10), 2, "requests.json"),
    "a tokenizer.json of 10 GB": (huge("model/tokenizer.json", 10**10), 3, "tokenizer.json"),
    "a config.json of 10 GB": (huge("model/config.json", 10**10), 3, "config.json"),
    "a tokenizer.json that is a pipe": (pipe("model/tokenizer.json"), 3, "tokenizer.json"),
    "a pickle of a million nested tuples": (deep_pickle, 3, "projections.pt"),
}


def peak_of(pid):
    """Its largest resident size so far, of the program alone: what wait4 tells begins with the size of whoever started it."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")), 0)
    except OSError:
        return 0  # it has ended


def expect_refused(folder, command, what, code, words):
    """In words, soon, and in little memory."""
    with open(folder / "said", "w") as said:
        process = subprocess.Popen([LANCET, *command], cwd=folder, env=ENVIRONMENT, stdout=said, stderr=said)
    timer = threading.Timer(MOST_SECONDS, process.kill)
    timer.start()
    peak_bytes = 0
    while process.poll() is None:
        peak_bytes = max(peak_bytes, peak_of(process.pid))
        time.sleep(0.01)
    timer.cancel()
    message = (folder / "said").read_text(errors="replace")
    note(f"{what}: exit {process.returncode}, {peak_bytes / MEGABYTE:.0f} MB")
    assert process.returncode == code, message[-600:]
    assert "error: " in message and all(word in message for word in words) and len(message) < 5000, message[:600]
    assert 0 < peak_bytes < MOST_MEMORY


FEW = ["a target of 100 MB", "a record of a million keys", "3 MB that unpack to a line of 3 GB", "a tokenizer.json that is a pipe"]


@pytest.mark.parametrize("what", CASES if FULL else FEW)
def test_what_is_too_large_is_refused_soon(tmp_path, what):
    make, code, file = CASES[what]
    write_model(tmp_path / "model")
    (tmp_path / "requests.json").write_text(json.dumps([REQUEST]))
    job = {"model": "model", "requests": {"path": "requests.json"}, "editor": {"method": "memit", "layers": [0, 1]}, "output": {"dir": "out"},
           "statistics": {"corpus": str(DATA / "requests" / "demo-corpus.txt"), "tokens": 600, "cache": "cache"}}  # fmt: skip
    (tmp_path / "job.json").write_text(json.dumps(job))
    if changes := make(tmp_path):
        (tmp_path / "job.json").write_text(json.dumps(job | changes))
    expect_refused(tmp_path, ["edit", "job.json"], what, code, [file])


def layers(model, number):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"num_hidden_layers": number}))


def keys(model, number):
    labels = {f"LABEL_{i}": i for i in range(number)}
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"label2id": labels}))


@pytest.mark.parametrize("command", [["inspect", "model"], ["generate", "--model", "model", "--prompt", "x"]], ids=["inspect", "generate"])
@pytest.mark.parametrize("change, number, words", [(layers, 10**9, "num_hidden_layers: expected at most 10000, got 1000000000"),
                                                   (keys, 10**6, "an object of more than 65536 keys")])  # fmt: skip
def test_a_config_that_names_too_much_is_refused_soon(tmp_path, command, change, number, words):
    write_model(tmp_path / "model")
    change(tmp_path / "model", number)
    expect_refused(tmp_path, command, f"config.json of {number} {change.__name__}, {command[0]}", 3, ["config.json", words])
