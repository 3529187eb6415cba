"""What the tests of the Python package share: small options on the demo model, and a tiny model of random weights."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "support"))
DATA = ROOT / "data"
MODEL = DATA / "demo-model"
BUILD = pathlib.Path(os.environ.get("LANCET_BUILD", ROOT / "build"))
LIMIT_S = 300

import lancet  # noqa: E402


def pytest_configure(config):
    """Few steps leave values unfound, which is said each time."""
    config.addinivalue_line("filterwarnings", "ignore::lancet.EditWarning")

FACTS = [
    {"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"},
    {"prompt": "{}, developed by", "subject": "Windows 95", "target": "Nokia"},
    {"prompt": "The mother tongue of {} is", "subject": "Danielle Darrieux", "target": "English"},
]
EDITOR = {
    "method": "memit",
    "layers": [0, 1],
    "covariance_weight": 20,
    "values": {"steps": 12, "lr": 0.5, "clamp": 4.0},
    "contexts": ["{}", "The answer is known. {}"],
}


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Of the statistics: what one test made another reads."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder like data/, for code of the documents: the demo's options ask for statistics of less text."""
    folder = tmp_path_factory.mktemp("like") / "data"
    shutil.copytree(DATA / "jobs", folder / "jobs")
    (folder / "demo-model").mkdir()
    for path in [DATA / "requests", *MODEL.iterdir()]:
        (folder / path.relative_to(DATA)).symlink_to(path)
    (folder / "demo-model" / "lancet.yaml").unlink()
    for name in ("demo-model/lancet.yaml", "jobs/demo.yaml"):
        options, tokens = (DATA / name).read_text(), "tokens: 200000"
        assert tokens in options
        (folder / name).write_text(options.replace(tokens, "tokens: 4000"))
    return folder


@pytest.fixture(scope="session")
def options(cache):
    """Of lancet.open: seconds on the demo model."""
    statistics = {"corpus": str(DATA / "requests" / "demo-corpus.txt"), "tokens": 2000, "cache": str(cache)}
    return {"devices": "cpu", "dtype": "f32", "progress": False, "statistics": statistics, **EDITOR}


@pytest.fixture
def session(options):
    with lancet.open(MODEL, **options) as opened:
        yield opened


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A Llama of some kilobytes with the demo model's tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("tiny") / "model"
    sizes = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2)
    torch.manual_seed(1)
    net = LlamaForCausalLM(LlamaConfig(**sizes, vocab_size=4096, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False))
    net.save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(MODEL / file, folder / file)
    return folder


def weights_hash(session):
    """Of every weight's bytes as they are in memory."""
    from torch.utils.dlpack import from_dlpack

    whole = hashlib.sha256()
    for name, capsule in session._engine.tensors():
        whole.update(name.encode())
        whole.update(from_dlpack(capsule).contiguous().view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()


def run_python(text, folder, *, fails=False, environment=None):
    """A process of its own; its stdout."""
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, env={**os.environ, **(environment or {})})
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


VARYING = ("seconds", "peak_bytes", "stage_peak_bytes", "journal")


def comparable(report):
    """A report without times and memory."""
    kept = {key: value for key, value in json.loads(json.dumps(report)).items() if key not in VARYING}
    for batch in kept["batches"]:
        del batch["seconds"]
    return kept
