"""`lancet export gguf`: a model folder as a GGUF file, against the file that tests/oracle writes of it, and read back by lancet."""
import dataclasses
import json
import os
import shutil
import struct

import checkpoints
import gguf_files
import llama_cpp
import pytest
import torch
from engine import answer_jobs, assert_rows_close, lancet_logits_of, run_binary, run_binary_raw
from family_checkpoints import VARIANTS, make_checkpoint
from quantised_twins import mxfp4_twins
from safetensors.torch import load_file, save_file
from test_families import TOKENIZER, rows
from test_gguf import FAMILIES as READ
from test_gguf import UNSAID
from test_tokenizer import DEMO, TOKENIZERS, fuzz_texts, request_texts, run_tool

BLOCKED = ("lancet.", "general.name", "general.type", "general.file_type", "tokenizer.")  # what the oracle has otherwise or not at all
FAMILIES = [name for name in READ if not name.startswith(("lfm2", "gptj")) and not name.endswith("_older")]  # which are read alone
ROUNDED_MORE = ("mixtral", "gpt_oss", "qwen35", "qwen35_equal_heads", "deepseek_v2", "deepseek_v3")
FULL = os.environ.get("LANCET_TEST_FULL")


def exported(folder, path, *options):
    run_binary("lancet", "export", "gguf", folder, "--out", path, *options)
    return path


def refusal(folder, path, *options):
    done = run_binary_raw("lancet", "export", "gguf", folder, "--out", path, *options)
    assert done.returncode in (2, 3, 5), done.stderr
    return done.stderr


def set_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not None or key in ("sliding_window", "q_lora_rank")}))
    return folder


def family_folder(name, folder):
    made = (checkpoints.make_checkpoint if name in checkpoints.VARIANTS else make_checkpoint)(name, folder, TOKENIZER)
    return set_config(made, **UNSAID.get(name, {}))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Of each family the folder, the oracle's file of it, lancet's, and lancet's of BF16; and the logits of all but the second."""
    root = tmp_path_factory.mktemp("gguf-export")
    made, jobs = {}, {}
    batch = rows([1, 13, 40])
    for name in FAMILIES:
        folder = family_folder(name, root / name)
        made[name] = [folder, gguf_files.from_checkpoint(folder, root / f"{name}.oracle.gguf")]
        made[name] += [exported(folder, root / f"{name}.gguf"), exported(folder, root / f"{name}.bf16.gguf", "--type", "BF16")]
        for i in (0, 2, 3):
            jobs[f"{name} {i}"] = dict(folder=str(made[name][i]), rows=batch, dtype="f32", out=str(root / f"{name}.{i}.safetensors"))
    answers = answer_jobs("dump_logits", jobs, root)
    assert {key: answer for key, answer in answers.items() if answer != len(batch)} == {}
    logits = {key: load_file(job["out"]) for key, job in jobs.items()}
    return made, {key: [logits[key][row] for row in sorted(logits[key])] for key in logits}


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_of_the_file_are_those_of_the_folder(name, files):
    _, logits = files
    assert_rows_close(logits[f"{name} 2"], logits[f"{name} 0"], 1e-9)
    # rounded to BF16; a router of few experts may then choose others, and a recurrent state keeps each difference
    assert_rows_close(logits[f"{name} 3"], logits[f"{name} 0"], 1e-1 if name in ROUNDED_MORE or "moe" in name else 2e-3)


def number_of(data, key):
    """What an entry of metadata says, as its bytes have it without its name."""
    return data[8 + len(key) :]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_file_is_the_oracles(name, files):
    """Tensors to the bit, and all metadata that the oracle has."""
    made, _ = files
    (ours, metadata), (expected, oracle) = (gguf_files.read_tensors(made[name][i]) for i in (2, 1))
    assert sorted(ours) == sorted(expected)
    for tensor in expected:
        if tensor == "rope_freqs.weight":  # powers of f64 in another order
            numbers = [struct.unpack(f"<{len(t[tensor][2]) // 4}f", t[tensor][2]) for t in (ours, expected)]
            assert numbers[0] == pytest.approx(numbers[1], rel=1e-6)
        else:
            assert ours[tensor] == expected[tensor], tensor
    for key, value in oracle.items():
        if not key.startswith(BLOCKED):
            assert metadata.get(key) == value, key


def test_experts_in_mxfp4_are_unpacked(tmp_path):
    packed, plain = mxfp4_twins(family_folder("gpt_oss", tmp_path / "base"), tmp_path / "packed", tmp_path / "plain")
    path = exported(packed, tmp_path / "packed.gguf", "--type", "F32")
    ours, expected = lancet_logits_of([path, plain], rows([1, 13]), "f32", tmp_path)
    assert_rows_close(ours, expected, 1e-9)


def test_a_tokenizer_of_pieces_gives_the_same_ids(tmp_path):
    texts = [*request_texts(), *fuzz_texts(400)]
    path = exported(DEMO, tmp_path / "demo.gguf")
    ours, expected = (run_tool(place, texts) for place in (path / "tokenizer.json", DEMO / "tokenizer.json"))
    assert [answer.get("ids") for answer in ours] == [answer.get("ids") for answer in expected]
    assert [answer.get("text") for answer in ours] == [answer.get("text") for answer in expected]


def with_tokenizer(folder, tokenizer, vocab_size):
    """A model whose embedding has so many rows, with another tokenizer."""
    for file in folder.glob("*token*"):
        file.unlink()
    for file in tokenizer.iterdir():
        shutil.copyfile(file, folder / file.name)
    weights = load_file(folder / "model.safetensors")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        if name in weights:
            weights[name] = weights[name][:vocab_size].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return set_config(folder, vocab_size=vocab_size, bos_token_id=0, eos_token_id=0)


@pytest.mark.parametrize(("tokenizer", "pre"), [("gpt2", "gpt-2"), ("qwen2", "qwen2")])
def test_a_byte_level_tokenizer_gives_the_same_ids(tokenizer, pre, tmp_path):
    folder = with_tokenizer(family_folder("qwen2", tmp_path / "model"), TOKENIZERS / tokenizer, 1400)
    path = exported(folder, tmp_path / "model.gguf")
    _, metadata = gguf_files.read_tensors(path)
    assert metadata["tokenizer.ggml.pre"].endswith(pre.encode())
    texts = [*request_texts(), *fuzz_texts(400)]
    ours, expected = (run_tool(place, texts) for place in (path / "tokenizer.json", folder / "tokenizer.json"))
    assert [answer.get("ids") for answer in ours] == [answer.get("ids") for answer in expected]


def change_tokenizer(folder, change):
    document = json.loads((folder / "tokenizer.json").read_text())
    change(document)
    (folder / "tokenizer.json").write_text(json.dumps(document))


def isolated(pattern):
    return dict(type="Split", pattern=dict(Regex=pattern), behavior="Isolated", invert=False)


BYTES = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
MARKS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^""" + "\r\n"
DEEPSEEK += r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[" + "\r\n" + r"]*|\s*[" + "\r\n" + r"]+|\s+(?!\S)|\s+"
WAYS = {
    "falcon": ([dict(type="Punctuation", behavior="Contiguous"), BYTES, dict(type="Digits", individual_digits=False), isolated("[0-9][0-9][0-9]")], False),
    "deepseek-v3": ([isolated(r"\p{N}{1,3}"), isolated("[一-龥\u3040-ゟ゠-ヿ]+"), isolated(DEEPSEEK), BYTES | dict(use_regex=False)], False),
    "olmo": ([BYTES], True),
    "qwen35": ([isolated(MARKS), BYTES | dict(use_regex=False)], True),
}


@pytest.mark.parametrize("pre", WAYS)
def test_a_way_to_cut_texts_gets_llama_cpps_name(pre, tmp_path):
    steps, has_nfc = WAYS[pre]
    folder = with_tokenizer(family_folder("qwen2", tmp_path / "model"), TOKENIZERS / "gpt2", 1400)
    before = run_tool(folder / "tokenizer.json", texts := [*request_texts(), *fuzz_texts(400)])
    change_tokenizer(folder, lambda document: document.update(pre_tokenizer=dict(type="Sequence", pretokenizers=steps)))
    change_tokenizer(folder, lambda document: document.update(normalizer=dict(type="NFC") if has_nfc else None))
    path = exported(folder, tmp_path / "model.gguf")
    assert gguf_files.read_tensors(path)[1]["tokenizer.ggml.pre"].endswith(pre.encode())
    ours, expected = (run_tool(place, texts) for place in (path / "tokenizer.json", folder / "tokenizer.json"))
    assert [answer.get("ids") for answer in ours] == [answer.get("ids") for answer in expected]
    assert before != expected


def test_a_way_to_cut_texts_without_a_name_is_refused(tmp_path):
    folder = with_tokenizer(family_folder("qwen2", tmp_path / "model"), TOKENIZERS / "qwen2", 1400)

    def change(document):
        document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"\p{N}{1,5}|\s+|\S"

    change_tokenizer(folder, change)
    said = refusal(folder, tmp_path / "model.gguf")
    assert r"\p{N}{1,5}|\s+|\S" in said and "pre_tokenizer" in said and "qwen2" in said
    assert not list(tmp_path.glob("*.gguf*"))


def test_tokens_that_take_blanks_are_warned_of(tmp_path):
    folder = with_tokenizer(family_folder("qwen2", tmp_path / "model"), TOKENIZERS / "qwen2", 1400)
    change_tokenizer(folder, lambda document: document["added_tokens"][0].update(rstrip=True))
    done = run_binary_raw("lancet", "export", "gguf", folder, "--out", tmp_path / "model.gguf")
    assert done.returncode == 0 and "rstrip" in done.stderr and done.stderr.count("warning") == 1, done.stderr


def test_merges_that_no_scores_give_are_refused(tmp_path):
    folder = shutil.copytree(DEMO, tmp_path / "model")
    change_tokenizer(folder, lambda document: document["model"]["merges"].pop(7))
    assert "model.merges" in refusal(folder, tmp_path / "model.gguf")


@pytest.mark.parametrize(
    ("family", "changes", "named"),
    [
        ("mistral_window", dict(sliding_window=8), "sliding_window"),
        ("llama3_rope", dict(hidden_act="gelu"), "hidden_act"),
        ("qwen3_moe", dict(norm_topk_prob=False), "norm_topk_prob"),
        ("gemma2", dict(query_pre_attn_scalar=100), "query_pre_attn_scalar"),
        ("gemma3", dict(layer_types=["sliding_attention", "full_attention"] * 2), "layer_types"),
        ("smollm3", dict(no_rope_layers=[1, 0, 1, 1, 1]), "no_rope_layers"),
        ("qwen3", dict(rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=64, truncate=False)), "rope"),
        ("qwen2", dict(eos_token_id=[2, 3, 4, 5]), "eos_token_id"),
        ("qwen2", dict(rope_parameters=dict(rope_type="dynamic", rope_theta=1e4, factor=2.0)), "dynamic"),
    ],
)
def test_what_metadata_cannot_say_is_refused_by_its_key(family, changes, named, tmp_path):
    folder = set_config(family_folder(family, tmp_path / "model"), **changes)
    (folder / "generation_config.json").unlink(missing_ok=True)
    said = refusal(folder, tmp_path / "model.gguf")
    assert named in said and "GGUF" in said, said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


@pytest.mark.parametrize("family", ["opt", "lfm2"])
def test_an_architecture_that_is_not_written_is_refused(family, tmp_path):
    folder = make_checkpoint(family, tmp_path / "model", TOKENIZER)
    said = refusal(folder, tmp_path / "model.gguf")
    assert f"'{family}'" in said and "qwen2" in said


def test_files_that_are_there_stay(tmp_path):
    path = tmp_path / "demo.gguf"
    path.write_text("mine")
    assert "exists already" in refusal(DEMO, path)
    assert "did not write" in refusal(DEMO, path, "--replace")
    assert path.read_text() == "mine"
    path.unlink()
    gguf_files.demo_model(DEMO, path)
    assert "did not write" in refusal(DEMO, path, "--replace")
    path.unlink()
    exported(DEMO, path)
    first = path.read_bytes()
    assert "exists already" in refusal(DEMO, path, "--type", "Q8_0")
    exported(DEMO, path, "--type", "Q8_0", "--replace")
    assert path.read_bytes() != first and [each.name for each in tmp_path.iterdir()] == ["demo.gguf"]
    assert ".gguf" in refusal(DEMO, tmp_path / "demo.bin")
    assert "GGUF file" in refusal(path, tmp_path / "again.gguf")


def test_q8_0_is_that_of_the_oracle(tmp_path):
    ours, _ = gguf_files.read_tensors(exported(DEMO, tmp_path / "demo.gguf", "--type", "Q8_0"))
    weights = gguf_files.tensors_of(json.loads((DEMO / "config.json").read_text()), load_file(DEMO / "model.safetensors"))
    for name, tensor in weights.items():
        kind, shape, data = ours[name]
        assert shape == tuple(tensor.shape)
        expected = gguf_files.encode_q8_0(tensor) if tensor.dim() > 1 else gguf_files.plain_bytes(tensor)
        assert kind == gguf_files.TYPES["Q8_0" if tensor.dim() > 1 else "F32"][0] and data == expected, name


def test_an_edited_folder_is_exported_with_its_edits(tmp_path):
    """An output of lancet edit is a model folder: the file's logits are the edited ones."""
    weights = load_file(DEMO / "model.safetensors")
    folder = shutil.copytree(DEMO, tmp_path / "edited")
    name = "model.layers.1.mlp.down_proj.weight"
    weights[name] = weights[name] + 0.05 * torch.randn(weights[name].shape, generator=torch.Generator().manual_seed(3)).to(weights[name].dtype)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    ours, _ = gguf_files.read_tensors(exported(folder, tmp_path / "edited.gguf"))
    base, _ = gguf_files.read_tensors(exported(DEMO, tmp_path / "base.gguf"))
    assert [key for key in base if base[key] != ours[key]] == ["blk.1.ffn_down.weight"]


def said_by_lancet(path, prompt):
    ours = run_binary("lancet", "generate", "--model", path, "--prompt", prompt, "--tokens", "12", "--json")
    return json.loads(ours.splitlines()[0])["text"].removeprefix(prompt).strip()


PROMPTS = ("The mother tongue of Danielle Darrieux is", "Piranha Games, created in", "Francis Hagerup was employed in")


@pytest.mark.skipif(not FULL, reason="takes minutes: make test-full")
@pytest.mark.parametrize("kind", ["F16", "Q8_0"])
def test_llama_cpp_says_what_lancet_says(kind, tmp_path):
    path = exported(DEMO, tmp_path / "demo.gguf", "--type", kind)
    assert llama_cpp.said_by(path, PROMPTS) == [said_by_lancet(path, prompt) for prompt in PROMPTS]


# llama.cpp has one size for a delta rule's keys and values
RUN_BY_LLAMA_CPP = dict.fromkeys(("gpt2", "neox", "falcon", "falcon_two_norms", "deepseek_v3"), {})
RUN_BY_LLAMA_CPP |= {"qwen35": dict(linear_value_head_dim=8), "qwen35_moe": dict(linear_value_head_dim=8)}
# it has no vector of queries in models of 26 and 27 layers alone, ranks groups as V3 does, and cuts YaRN's frequencies at whole pairs
RUN_BY_LLAMA_CPP["deepseek_v2"] = dict(q_lora_rank=16, n_group=1, topk_group=1, topk_method="greedy")
RUN_BY_LLAMA_CPP["gpt_oss"] = dict(rope_parameters=dict(rope_type="default", rope_theta=150000.0))


@pytest.mark.skipif(not FULL, reason="takes minutes: make test-full")
@pytest.mark.parametrize("family", RUN_BY_LLAMA_CPP)
def test_llama_cpp_runs_other_architectures_as_lancet_does(family, tmp_path, monkeypatch):
    variant = VARIANTS[family]
    monkeypatch.setitem(VARIANTS, family, dataclasses.replace(variant, config=variant.config | RUN_BY_LLAMA_CPP[family]))
    path = exported(family_folder(family, tmp_path / "model"), tmp_path / "model.gguf")
    same = [theirs == said_by_lancet(path, prompt) for theirs, prompt in zip(llama_cpp.said_by(path, PROMPTS), PROMPTS, strict=True)]
    assert same.count(True) >= 2, same  # of random weights two tokens or two experts may be as good
