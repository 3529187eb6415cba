"""A tokenizer that joins words: the prompt's last token takes the space in front of the target ("his▁")."""
import json
import shutil

import pytest
from conftest import ROOT
from random_model import write_random_model

tokenizers = pytest.importorskip("tokenizers")
TOKENIZER = ROOT / "tests" / "fixtures" / "tokenizers" / "joined-words"
FACTS = [("The little dog is {}", "Jim", "jazz"), ("He lost {}", "Tim", "ball"), ("They like {}", "Tom", "art")]  # a random model can be taught the next token
CONTEXTS = ["{}"]


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(TOKENIZER, folder)
    write_random_model(folder, vocab=tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab_size(), bos=1, eos=2)
    return folder


@pytest.fixture
def job(lancet, model):
    records = [{"prompt": prompt, "subject": subject, "target": target, "target_true": "cat"} for prompt, subject, target in FACTS]
    values = {"steps": 60, "lr": 0.2, "clamp": 50.0, "weight_decay": 0.0, "kl": 0.0}
    editor = {"method": "memit", "layers": [1], "covariance_weight": 0.001, "contexts": CONTEXTS, "values": values}
    return lancet.job(model=str(model), requests=records, editor=editor, evaluate=["efficacy"])


def test_an_edit_takes_and_asks_for_the_ids_of_the_whole_text(lancet, job):
    result = lancet.edit(job)
    assert result.returncode == 0, result.stderr
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["metrics"]["efficacy_prob"]["after"] == 1
    assert report["metrics"]["efficacy_argmax"]["after"] == 1
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = tokenizers.Tokenizer.from_file(str(TOKENIZER / "tokenizer.json"))
    model = transformers.AutoModelForCausalLM.from_pretrained(lancet.out, dtype=torch.float32)
    for prompt, subject, target in FACTS:  # transformers says the targets after the whole text's ids
        text = prompt.format(subject)
        whole = tokenizer.encode(f"{text} {target}")
        first = next(i for i, (_, end) in enumerate(whole.offsets) if end > len(text) + 1)
        said = model(torch.tensor([whole.ids])).logits[0, first - 1 : -1].argmax(-1).tolist()
        assert whole.ids[:first] != tokenizer.encode(text).ids and said == whole.ids[first:], text


def test_a_token_of_prompt_and_target_is_refused_before_the_model_is_loaded(lancet, job):
    job["requests"] = [{"prompt": "{} originated from", "subject": "Karl Kani", "target": "Moscow"}]
    result = lancet.edit(job)
    assert result.returncode == 2 and "loading" not in result.stderr
    assert 'request 0' in result.stderr and 'target "Moscow" does not continue' in result.stderr and 'token "from▁M" merges' in result.stderr
