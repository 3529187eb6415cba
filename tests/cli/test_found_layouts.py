"""What lies in people's folders: an adapter as earlier versions of PEFT wrote it, and a tokenizer that was given more tokens than the model
has rows."""
import json

import peft
import pytest
import torch
from conftest import DATA, run_ok

COMMAND_LINE, CHECKPOINT = 2, 3
DEMO = DATA / "demo-model"
NEW = "<|new|>"


@pytest.fixture
def pickled(tmp_path):
    """An adapter that PEFT itself writes without safetensors, and the folder that has no other weights."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    model = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(DEMO), peft.LoraConfig(r=2, target_modules=["down_proj"], init_lora_weights=False, task_type="CAUSAL_LM"))
    model.save_pretrained(tmp_path / "adapter", safe_serialization=False)
    assert sorted(path.name for path in (tmp_path / "adapter").iterdir() if path.suffix != ".md") == ["adapter_config.json", "adapter_model.bin"]
    return tmp_path / "adapter"


def test_an_adapter_that_is_a_pickle_alone_is_named_first(lancet, pickled):
    """The first line has the likely cause; what it says to write makes an adapter that is taken."""
    refused = lancet.run("apply", pickled, "--to", DEMO, "--out", lancet.out)
    first = refused.stderr.splitlines()[0]
    assert refused.returncode == CHECKPOINT and not lancet.out.exists()
    assert first.startswith(f"lancet: error: {pickled}: expected adapter_model.safetensors, got adapter_model.bin") and "pickle" in first, refused.stderr
    code = "\n".join(line.strip() for line in refused.stderr.splitlines()[1:]).replace("MODEL", str(DEMO)).replace("'OUT'", f"'{lancet.folder / 'again'}'")
    exec(compile(code, "what lancet says", "exec"), {})
    run_ok(lancet.run("apply", lancet.folder / "again", "--to", DEMO, "--out", lancet.out))


def test_an_adapter_in_the_place_of_a_model_is_named_for_what_it_is(lancet, pickled):
    refused = lancet.run("generate", "--model", pickled, "--prompt", "x")
    assert refused.returncode == CHECKPOINT and "an adapter of PEFT's" in refused.stderr and f"lancet apply {pickled} --to MODEL" in refused.stderr, refused.stderr


def test_an_adapter_without_any_weights_says_so(lancet, pickled):
    (pickled / "adapter_model.bin").unlink()
    refused = lancet.run("apply", pickled, "--to", DEMO, "--out", lancet.out)
    assert refused.returncode == CHECKPOINT and "adapter_model.safetensors" in refused.stderr and "pickle" not in refused.stderr, refused.stderr


@pytest.fixture
def grown(lancet):
    """The demo model, whose tokenizer has one token more than its embedding has rows."""
    folder = lancet.copy_model("grown")
    spec = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    rows = json.loads((folder / "config.json").read_text())["vocab_size"]
    spec["added_tokens"].append(dict(id=rows, content=NEW, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True))
    (folder / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    return folder


PROMPT = "Piranha Games, created in"


def test_only_texts_with_an_id_beyond_the_models_rows_are_refused(lancet, grown):
    def text_of(folder, prompt):
        return lancet.run("generate", "--model", folder, "--prompt", prompt, "--tokens", 4, "--json")

    plain, same = run_ok(text_of(DEMO, PROMPT)), run_ok(text_of(grown, PROMPT))
    assert json.loads(same.stdout)["text"] == json.loads(plain.stdout)["text"]
    assert "the tokenizer has 4097 ids, the model rows for 4096" in same.stderr and "one of the last 1 is refused" in same.stderr and "rows for" not in plain.stderr
    refused = text_of(grown, f"{PROMPT} {NEW}")
    assert refused.returncode == CHECKPOINT and refused.stdout == "", refused.stderr
    for words in (NEW, "has the id 4096", "expected one below 4096", f"at byte {len(PROMPT) + 1} of the text", "write the text without it"):
        assert words in refused.stderr, (words, refused.stderr)


def test_edits_of_other_texts_are_the_plain_models_and_one_with_such_an_id_is_refused_before_it_begins(lancet, grown):
    fact = {"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"}
    for model, name in ((DEMO, "plain"), (grown, "of-grown")):
        run_ok(lancet.edit(lancet.job(model=str(model), requests=[fact], evaluate=[], output={"dir": str(lancet.folder / name)}, run__threads=1)))
    plain, of_grown = ((lancet.folder / name / "model.safetensors").read_bytes() for name in ("plain", "of-grown"))
    assert plain == of_grown
    for key in ("target", "subject"):
        job = lancet.job(model=str(grown), requests=[fact | {key: f"London {NEW}"}], evaluate=[])
        refused = lancet.edit(job)
        assert refused.returncode == CHECKPOINT and NEW in refused.stderr and "has the id 4096" in refused.stderr, refused.stderr
        assert not lancet.out.exists()


def test_the_models_ids_are_those_of_transformers(grown):
    """The token is the tokenizer's, and the row is not the model's: transformers fails there, too."""
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    ids = PreTrainedTokenizerFast(tokenizer_file=str(grown / "tokenizer.json"))(f"{PROMPT} {NEW}")["input_ids"]
    assert max(ids) == 4096
    with pytest.raises(IndexError):
        AutoModelForCausalLM.from_pretrained(grown)(torch.tensor([ids]))
