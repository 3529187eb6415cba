"""A tokenizer that joins words: the prompt's last token takes the space in front of the target ("his▁"). A trained model of that kind."""
import json

import pytest
from conftest import ROOT

tokenizers = pytest.importorskip("tokenizers")
MODEL = ROOT.parent / "shared" / "data" / "models" / "tinystories-hf-656k"
FACTS = [("The name of the little {} is", "dog", "Lily"), ("{} lost his", "Tim", "ball"), ("{} likes his", "Jack", "king")]
CONTEXTS = ["{}", "Once upon a time there was a park. {}"]


@pytest.fixture
def job(lancet):
    if not MODEL.exists():
        pytest.skip(f"{MODEL} is absent")
    records = [{"prompt": prompt, "subject": subject, "target": target, "target_true": "cat"} for prompt, subject, target in FACTS]
    editor = {"method": "memit", "layers": [0], "covariance_weight": 1, "contexts": CONTEXTS, "values": {"steps": 60, "lr": 0.5, "clamp": 4.0}}
    return lancet.job(model=str(MODEL), requests=records, editor=editor, evaluate=["efficacy"])


def test_an_edit_takes_and_asks_for_the_ids_of_the_whole_text(lancet, job):
    result = lancet.edit(job)
    assert result.returncode == 0, result.stderr
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["metrics"]["efficacy_prob"]["after"] == 1
    assert report["metrics"]["efficacy_argmax"]["after"] == 1
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = tokenizers.Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    model = transformers.AutoModelForCausalLM.from_pretrained(lancet.out, dtype=torch.float32)
    for prompt, subject, target in FACTS:  # transformers says the targets behind the whole text's ids
        text = prompt.format(subject)
        whole = tokenizer.encode(f"{text} {target}")
        first = next(i for i, (_, end) in enumerate(whole.offsets) if end > len(text) + 1)
        said = model(torch.tensor([whole.ids])).logits[0, first - 1 : -1].argmax(-1).tolist()
        assert whole.ids[:first] != tokenizer.encode(text).ids and said == whole.ids[first:], text


def test_a_token_of_prompt_and_target_is_refused_before_the_model_is_loaded(lancet, job):
    job["requests"] = [{"prompt": "{} and Lily went to the", "subject": "Tom", "target": "park"}]
    result = lancet.edit(job)
    assert result.returncode == 2 and "loading" not in result.stderr
    assert 'request 0' in result.stderr and 'target "park" does not continue' in result.stderr and 'token "went▁to▁the▁park" merges' in result.stderr
