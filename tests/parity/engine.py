"""Decides how the parity tests run lancet's binaries, load models with transformers, and measure a difference."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from program_server import KEPT_MEMORY, ProgramServer, can_be_ordered  # noqa: E402

BUILD = Path(os.environ.get("LANCET_BUILD", ROOT / "build"))
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64}
LIMIT_S = 300
_servers = {}


@atexit.register
def end_servers():
    for server, folder in _servers.values():
        server.end()
        shutil.rmtree(folder.parent, ignore_errors=True)


def run_binary_raw(name, *arguments):
    """build/<name> run to its end, in an empty folder; a missing binary fails the test. Loading a program takes longer than most runs of it."""
    binary = BUILD / name
    if not binary.exists():
        pytest.fail(f"{binary} is absent: build it, or set LANCET_BUILD to the build folder")
    if name not in _servers:
        folder = Path(tempfile.mkdtemp(prefix="lancet-parity-")) / "run"
        folder.mkdir()
        _servers[name] = ProgramServer(binary, KEPT_MEMORY | os.environ), folder
    server, folder = _servers[name]
    command = [str(binary), *map(str, arguments)]
    if not can_be_ordered(command):
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=LIMIT_S)
    return subprocess.CompletedProcess(command, *server.run(folder, command[1:], limit_s=LIMIT_S))


def run_binary(name, *arguments):
    """Standard output of build/<name>; a missing binary or a failing run fails the test."""
    done = run_binary_raw(name, *arguments)
    if done.returncode != 0:
        pytest.fail(f"{name} {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def answer_jobs(kind, jobs, scratch):
    """What tests/support/answer_jobs.h answers to an object of jobs, by their names: starting it takes longer than a job."""
    (scratch / "jobs.json").write_text(json.dumps(jobs))
    return json.loads(run_binary("tests/answer_jobs", kind, scratch / "jobs.json"))


def lancet_logits_of_all(folders, rows, dtype, scratch):
    """Of each model lancet's logits for rows of ids, computed as one batch, a list of [T, V]; or the words it refuses the model with."""
    outs = [scratch / f"logits-{i}.safetensors" for i in range(len(folders))]
    jobs = {out.name: dict(folder=str(folder), rows=rows, dtype=dtype, out=str(out)) for folder, out in zip(folders, outs, strict=True)}
    answers, found = answer_jobs("dump_logits", jobs, scratch), []
    for out in outs:
        if answers[out.name] != len(rows):
            found.append(answers[out.name]["error"])
            continue
        logits = load_file(out)
        assert sorted(logits) == sorted(f"logits.{row}" for row in range(len(rows)))
        found.append([logits[f"logits.{row}"] for row in range(len(rows))])
    return found


def lancet_logits_of(folders, rows, dtype, scratch):
    """The same of models that are not refused."""
    found = lancet_logits_of_all(folders, rows, dtype, scratch)
    for folder, logits in zip(folders, found, strict=True):
        assert not isinstance(logits, str), (folder, logits)
    return found


def lancet_logits(folder, rows, dtype, scratch):
    """The same of one model."""
    return lancet_logits_of([folder], rows, dtype, scratch)[0]


def load_transformers(folder, dtype):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=DTYPES[dtype]).eval()


def load_tokenizer(folder):
    """The pipeline that tokenizer.json itself describes. AutoTokenizer of transformers 5 builds another one for LlamaTokenizer;
    transformers 4 and every other reader of the file follow the file, and so does lancet."""
    from transformers import PreTrainedTokenizerFast

    config = json.loads((Path(folder) / "tokenizer_config.json").read_text())
    names = {key: config[key] for key in ("bos_token", "eos_token", "unk_token") if isinstance(config.get(key), str)}
    return PreTrainedTokenizerFast(tokenizer_file=str(Path(folder) / "tokenizer.json"), **names)


def transformers_logits(net, rows):
    """Logits of transformers, each row alone: no padding is involved."""
    return [net(torch.tensor([row])).logits[0] for row in rows]


def nmse(ours, theirs):
    assert ours.shape == theirs.shape, f"{tuple(ours.shape)} against {tuple(theirs.shape)}"
    ours, theirs = ours.double(), theirs.double()
    return ((ours - theirs).square().sum() / theirs.square().sum()).item()


def assert_rows_close(ours, theirs, tolerance):
    errors = [nmse(a, b) for a, b in zip(ours, theirs, strict=True)]
    print("NMSE per row: " + " ".join(f"{error:.1e}" for error in errors))
    worst = max(errors)
    assert worst <= tolerance, f"NMSE {worst:.2e} in row {errors.index(worst)}, expected at most {tolerance:.0e}"
