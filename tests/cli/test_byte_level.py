"""A model with Llama 3's kind of tokenizer, end to end: a tiny random checkpoint whose byte-level BPE is trained here."""
import json

import pytest
from conftest import DATA
from random_model import write_random_model

tokenizers = pytest.importorskip("tokenizers")

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
           r"|\s+(?!\S)|\s+")
BOS, EOS = "<|begin_of_text|>", "<|end_of_text|>"
CORPUS = DATA / "requests" / "demo-corpus.txt"


def train_tokenizer(folder):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=True))
    pre, alphabet = tokenizers.pre_tokenizers, tokenizers.pre_tokenizers.ByteLevel.alphabet()
    tokenizer.pre_tokenizer = pre.Sequence([pre.Split(tokenizers.Regex(PATTERN), "isolated"),
                                            pre.ByteLevel(add_prefix_space=False, use_regex=False)])  # fmt: skip
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=598, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS.read_text(encoding="utf-8").splitlines()[:3000], trainer)
    tokenizer.add_special_tokens([BOS, EOS])
    bos = tokenizer.token_to_id(BOS)
    tokenizer.post_processor = tokenizers.processors.Sequence([
        tokenizers.processors.ByteLevel(trim_offsets=False),
        tokenizers.processors.TemplateProcessing(single=f"{BOS} $A", pair=f"{BOS} $A {BOS}:1 $B:1", special_tokens=[(BOS, bos)])])  # fmt: skip
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": BOS, "eos_token": EOS}
    (folder / "tokenizer_config.json").write_text(json.dumps({**names, "tokenizer_class": "PreTrainedTokenizerFast"}))
    (folder / "special_tokens_map.json").write_text(json.dumps(names))
    return tokenizer


@pytest.fixture
def tiny(tmp_path):
    """The model's folder and its tokenizer."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    tokenizer = train_tokenizer(folder)
    write_random_model(folder, tokenizer.get_vocab_size(), bos=tokenizer.token_to_id(BOS), eos=tokenizer.token_to_id(EOS))
    return folder, tokenizer


def test_a_model_with_a_byte_level_tokenizer_is_edited_and_exported(lancet, tiny):
    folder, tokenizer = tiny
    # A random model can be taught the next token; the last request only has to go through: its subject's characters and its target are
    # cut into many tokens.
    requests = [
        {"prompt": "A maker of games is {}", "subject": "Piranha Games", "target": "of"},
        {"prompt": "The country is {}", "subject": "日本", "target": "the"},
        {"prompt": "{}の首都 is", "subject": "東京", "target": "Zürich 1990"},
    ]
    values = {"steps": 60, "lr": 0.5, "clamp": 20.0, "weight_decay": 0.0, "kl": 0.0}
    job = lancet.job(model=str(folder), requests=requests, evaluate=["efficacy", "generation"], editor__values=values,
                     editor__covariance_weight=0.001, editor__contexts=["{}"])  # fmt: skip
    result = lancet.edit(job)
    assert result.returncode == 0, result.stderr
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        assert (lancet.out / name).read_bytes() == (folder / name).read_bytes()
    report = json.loads((lancet.out / "report.json").read_text())
    for request in report["requests"][:2]:
        assert request["value"]["final_loss"] < request["value"]["initial_loss"] / 4

    prompt = "The country is 日本"
    said = json.loads(lancet.run("generate", "--model", lancet.out, "--prompt", prompt, "--tokens", 3, "--json").stdout)
    assert said["ids"][:1] == tokenizer.encode(" the", add_special_tokens=False).ids
    assert said["text"] == tokenizer.decode(said["ids"])
    assert "BPE (byte level), tokenizer.json" in lancet.run("inspect", lancet.out).stdout


def test_ranks_without_a_tokenizer_json_are_refused(lancet, tiny):
    folder, _ = tiny
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_text("IQ== 0\nIg== 1\n")
    result = lancet.run("inspect", folder)
    assert result.returncode == 3
    assert "byte-level BPE ranks" in result.stderr and "put the tokenizer.json" in result.stderr
