"""`lancet export checkpoint`: the model of a GGUF file as a folder, read by transformers, against the folder that the file was made of."""
import json

import gguf_files
import pytest
import torch
from engine import assert_rows_close, run_binary, run_binary_raw
from family_checkpoints import load
from safetensors.torch import load_file
from test_families import rows
from test_gguf import FAMILIES
from test_gguf_export import family_folder, set_config
from test_tokenizer import DEMO, fuzz_texts, request_texts
from transformers import AutoTokenizer


def exported(path, folder, *options):
    run_binary("lancet", "export", "checkpoint", path, "--out", folder, *options)
    return folder


@pytest.mark.parametrize("name", FAMILIES)
def test_transformers_computes_what_it_computed(name, tmp_path):
    """Of a file of F32: the same tensors by the same names, and the same logits."""
    folder = family_folder(name, tmp_path / "folder")
    made = exported(gguf_files.from_checkpoint(folder, tmp_path / "model.gguf", tokenizer=DEMO / "tokenizer.model", older=name.endswith("_older")), tmp_path / "made")
    before, after = (load_file(place / "model.safetensors") for place in (folder, made))
    assert sorted(after) == sorted(name for name in before if name in after or name != "lm_head.weight")
    for key in after:
        torch.testing.assert_close(after[key], before[key].float(), rtol=0, atol=2e-7, msg=key)  # norms came as w + 1
    if name.startswith(("phi3", "smollm3", "glm4")):  # where none is said, transformers takes a padding id beyond these few tokens
        made, folder = (set_config(place, pad_token_id=0) for place in (made, folder))
    batch = rows([13, 40])
    with torch.no_grad():
        ours, expected = ([load(place)(torch.tensor([row])).logits[0] for row in batch] for place in (made, folder))
    assert_rows_close(ours, expected, 1e-9)


def test_a_quantised_file_is_unpacked(tmp_path):
    """Each number is the decoded one in the type that is asked for, and the tokenizer is the model's own."""
    path = gguf_files.demo_model(DEMO, tmp_path / "demo.gguf", "Q8_0")
    tensors, _ = gguf_files.read_tensors(path)
    _, shape, data = tensors["blk.1.ffn_down.weight"]
    expected = gguf_files.decode("Q8_0", list(shape), data)
    for dtype, type in ((None, torch.bfloat16), ("f32", torch.float32), ("f16", torch.float16)):
        made = exported(path, tmp_path / str(dtype), *(("--dtype", dtype) if dtype else ()))
        weights = load_file(made / "model.safetensors")
        assert {tensor.dtype for tensor in weights.values()} == {type}
        assert torch.equal(weights["model.layers.1.mlp.down_proj.weight"], expected.to(type))
        config = json.loads((made / "config.json").read_text())
        assert config["dtype"] == str(type).removeprefix("torch.") and "quantization_config" not in config
    tokenizer, own = AutoTokenizer.from_pretrained(made), AutoTokenizer.from_pretrained(DEMO)
    texts = [*request_texts()[:200], *fuzz_texts(100)]
    assert [tokenizer(text)["input_ids"] for text in texts] == [own(text)["input_ids"] for text in texts]


def generated(model, prompt):
    said = run_binary("lancet", "generate", "--model", model, "--prompt", prompt, "--tokens", "12", "--json")
    return json.loads(said.splitlines()[0])["text"]


def test_transformers_generates_the_same_text(tmp_path):
    path = gguf_files.demo_model(DEMO, tmp_path / "demo.gguf", "Q8_0")
    made = exported(path, tmp_path / "made", "--dtype", "f32")
    prompt = "The mother tongue of Danielle Darrieux is"
    tokenizer = AutoTokenizer.from_pretrained(made)
    ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
    theirs = load(made).generate(ids, max_new_tokens=12, do_sample=False)[0]
    ours = generated(path, prompt)
    assert tokenizer.decode(theirs, skip_special_tokens=True).endswith(ours.removeprefix(prompt)), ours
    assert ours == generated(made, prompt)


def test_weights_are_divided_into_shards(tmp_path):
    path = gguf_files.demo_model(DEMO, tmp_path / "demo.gguf", "BF16")
    made = exported(path, tmp_path / "made", "--max-shard-size", "2MB")
    whole = load_file(exported(path, tmp_path / "whole") / "model.safetensors")
    index = json.loads((made / "model.safetensors.index.json").read_text())
    shards = {file: load_file(made / file) for file in index["weight_map"].values()}
    assert len(shards) > 2 and index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in whole.values())
    assert {name: file for file, tensors in shards.items() for name in tensors} == index["weight_map"]
    for name, tensor in whole.items():
        assert torch.equal(shards[index["weight_map"][name]][name], tensor)
    assert load(made).config.vocab_size == load(tmp_path / "whole").config.vocab_size


def test_what_cannot_be_is_refused(tmp_path):
    def refusal(*arguments):
        done = run_binary_raw("lancet", "export", "checkpoint", *arguments)
        assert done.returncode == 2, done.stderr
        return done.stderr

    path = gguf_files.demo_model(DEMO, tmp_path / "demo.gguf", "BF16")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("mine")
    assert "exists already" in refusal(path, "--out", tmp_path / "mine")
    assert "letter.txt" in refusal(path, "--out", tmp_path / "mine", "--replace")
    assert "GGUF file" in refusal(DEMO, "--out", tmp_path / "made")
    assert "4GB" in refusal(path, "--out", tmp_path / "made", "--max-shard-size", "many")
    assert not (tmp_path / "made").exists()
