"""The GGUF files that local users have, edited: llama.cpp itself says the new answers, and every other tensor has its very bytes.

The files are downloaded (tools/real_models.py --gguf), and the edits take minutes: with LANCET_TEST_FULL=1 (make test-full) alone.
"""
import json
import sys

import llama_cpp
import pytest
from conftest import DATA, ROOT, Lancet, run_ok
from test_real_models import REAL_MODELS, in_full

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "oracle")]
import gguf_files  # noqa: E402
import real_models  # noqa: E402
from show_answers import begins_with  # noqa: E402

pytestmark = in_full
FACTS = DATA / "requests" / "smollm2-known.json"


def count_of(texts, facts):
    return sum(begins_with(text.strip(), fact["requested_rewrite"]["target_new"]["str"]) for text, fact in zip(texts, facts, strict=True))


# SmolLM2 knows the true answers of these facts, Gemma does not
@pytest.mark.parametrize(("name", "gguf_type", "at_least"), [("smollm2", "auto", 19), ("smollm2", "own", 18), ("gemma3", "auto", 15), ("gemma3", "own", 12)])
def test_llama_cpp_says_what_was_edited(tmp_path, name, gguf_type, at_least):
    base, lancet, facts = real_models.prepare_file(name, REAL_MODELS), Lancet(tmp_path), json.loads(FACTS.read_text())
    edited = tmp_path / "edited.gguf"
    settings = [f"output.gguf_type={gguf_type}", f"statistics.cache={tmp_path / 'cache'}", "evaluate=[efficacy, generation]"]
    run_ok(lancet.run("edit", "--model", base, "--requests", FACTS, "--out", edited, *[word for setting in settings for word in ("--set", setting)]))
    prompts = [fact["requested_rewrite"]["prompt"].format(fact["requested_rewrite"]["subject"]) for fact in facts]
    said = llama_cpp.said_by(edited, prompts)
    assert count_of(said, facts) >= at_least, list(zip(prompts, said, strict=True))
    (tmp_path / "prompts.txt").write_text("\n".join(prompts))
    ours = run_ok(lancet.run("generate", "--model", edited, "--prompts", tmp_path / "prompts.txt", "--tokens", 12, "--json")).stdout
    texts = [json.loads(line)["text"].removeprefix(prompt) for line, prompt in zip(ours.splitlines(), prompts, strict=True)]
    assert count_of(texts, facts) >= at_least, texts
    before, after = (gguf_files.read_tensors(path)[0] for path in (base, edited))
    changed = {tensor for tensor in before if before[tensor] != after[tensor]}
    report = json.loads((tmp_path / "edited.gguf.edits" / "report.json").read_text())
    assert list(before) == list(after) and len(changed) == len(report["weights"]) and all(tensor.endswith("ffn_down.weight") for tensor in changed), changed
    assert edited.stat().st_size <= 1.04 * base.stat().st_size
