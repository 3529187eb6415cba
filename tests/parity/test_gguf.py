"""GGUF files read by lancet: every type of blocks to the bit, every architecture's logits against those of the folder that it was made of."""
import dataclasses
import json
import os
import random

import checkpoints
import gguf_files
import gguf_search
import numpy as np
import pytest
import torch
from engine import answer_jobs, assert_rows_close, lancet_logits_of, lancet_logits_of_all
from family_checkpoints import DENSE, VARIANTS, make_checkpoint
from matrix_jobs import Jobs, assert_same_bits
from safetensors.torch import load_file
from test_families import TOKENIZER, rows
from test_packing import PackJobs, matrix
from test_tokenizer import DEMO, fuzz_texts, request_texts, run_tool

SHAPE = [6, 512]
NAME = "model.layers.0.mlp.down_proj.weight"
# what tests/fixtures/families and family_checkpoints.py have of the architectures
FAMILIES = ["llama3_rope", "mistral_window", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3", "olmo2", "stablelm"]
FAMILIES += ["granite", "smollm3", "qwen2_moe_everywhere", "glm4", "cohere", "cohere2", "starcoder2", "exaone4", "exaone4_no_window", "nemotron"]
FAMILIES += ["phi3", "phi3_longrope", "phi", "lfm2", "gpt2", "gpt2_inner", "gpt2_untied", "neox", "neox_sequential", "neox_no_bias", "gptj", "gptj_inner"]
FAMILIES += ["falcon", "falcon_two_norms", "falcon_one_norm", "gpt_oss", "qwen35", "qwen35_equal_heads", "qwen35_moe"]
FAMILIES += ["deepseek_v2", "deepseek_v2_older", "deepseek_v3", "glm4_moe_lite_first_dense"]
# what a GGUF file does not say of a checkpoint, or llama.cpp computes otherwise
UNSAID = {
    "mistral_window": dict(sliding_window=None),
    "gemma2": dict(layer_types=None),
    "gemma3": dict(layer_types=None),
    "cohere2": dict(layer_types=None),
    "exaone4": dict(layer_types=None),
    "smollm3": dict(no_rope_layers=None),
    "gpt_oss": dict(swiglu_limit=7.0),
}
# a Qwen2-MoE of llama.cpp's has experts in every layer
VARIANTS["qwen2_moe_everywhere"] = dataclasses.replace(DENSE["qwen2_moe"], config=DENSE["qwen2_moe"].config | dict(mlp_only_layers=[]))

# nor has a Falcon of llama.cpp's biases
FALCON = DENSE["falcon_grouped"].config | dict(bias=False)
VARIANTS["falcon_two_norms"] = dataclasses.replace(DENSE["falcon_grouped"], config=FALCON)
VARIANTS["falcon_one_norm"] = dataclasses.replace(DENSE["falcon_grouped"], config=FALCON | dict(num_ln_in_parallel_attn=1))
# every fourth layer has attention; without and with experts
QWEN35 = {key: value for key, value in DENSE["qwen3_5"].config.items() if key != "layer_types"}
VARIANTS["qwen35"] = dataclasses.replace(DENSE["qwen3_5"], config=QWEN35)
VARIANTS["qwen35_equal_heads"] = dataclasses.replace(DENSE["qwen3_5"], config=QWEN35 | dict(linear_num_value_heads=2, tie_word_embeddings=True))
QWEN35_MOE = {key: value for key, value in DENSE["qwen3_5_moe"].config.items() if key != "layer_types"}
VARIANTS["qwen35_moe"] = dataclasses.replace(DENSE["qwen3_5_moe"], config=QWEN35_MOE)
VARIANTS["deepseek_v2_older"] = DENSE["deepseek_v2"]
GLM = {key: value for key, value in DENSE["glm4_moe_lite"].config.items() if key != "mlp_layer_types"}
VARIANTS["glm4_moe_lite_first_dense"] = dataclasses.replace(DENSE["glm4_moe_lite"], config=GLM)

DAMAGED = [kind for kind in gguf_files.BLOCKS if kind != "NVFP4"]  # whose scales are all numbers


def one_matrix(kind, data, shape=SHAPE):
    sizes = {"block_count": 1, "embedding_length": shape[0], "attention.head_count": 1, "attention.layer_norm_rms_epsilon": 1e-5}
    metadata = {"general.architecture": "llama"} | {f"llama.{key}": size for key, size in sizes.items()}
    embedding = ("F32", [4, shape[0]], gguf_files.plain_bytes(torch.ones(4, shape[0])))
    return gguf_files.gguf_bytes(metadata, {"token_embd.weight": embedding, "blk.0.ffn_down.weight": (kind, shape, data)})


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    jobs = Jobs("dump_weights", tmp_path_factory.mktemp("blocks"))
    made = {}
    for i, kind in enumerate(gguf_files.BLOCKS):
        folder = jobs.new_folder()
        made[kind] = gguf_files.random_blocks(kind, SHAPE, 100 + i)
        (folder / "model.gguf").write_bytes(one_matrix(kind, made[kind]))
        jobs.jobs[kind] = dict(folder=str(folder / "model.gguf"), shapes={NAME: SHAPE}, dtypes=["f32", "bf16"], out=str(folder / "out.safetensors"))
        if kind in DAMAGED:
            whole = jobs.new_folder()
            (whole / "model.gguf").write_bytes(one_matrix(kind, gguf_files.damaged_blocks(kind, made[kind])))
            jobs.jobs[f"{kind} damaged"] = jobs.jobs[kind] | dict(folder=str(whole), out=str(whole / "out.safetensors"))
    return jobs.run(), made


@pytest.mark.parametrize("kind", gguf_files.BLOCKS)
def test_blocks_are_decoded_to_the_bit(kind, unpacked):
    jobs, made = unpacked
    answer = jobs.answer(kind)[NAME]
    expected = gguf_files.decode(kind, SHAPE, made[kind])
    tensors = load_file(jobs.jobs[kind]["out"])
    assert_same_bits(tensors[f"f32|{NAME}"], expected, kind)
    assert_same_bits(tensors[f"bf16|{NAME}"], expected.bfloat16(), kind)
    assert answer["bytes"] == answer["foretold"] == answer["stored_bytes"] == len(made[kind])
    assert answer["tensors"] == [f"{NAME}.{kind}"]


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_scale_that_is_no_number_is_refused(kind, unpacked):
    assert "not finite" in unpacked[0].refusal(f"{kind} damaged")


@pytest.mark.skipif(not os.environ.get("LANCET_TEST_FULL"), reason="takes minutes: make test-full")
@pytest.mark.parametrize("kind", gguf_files.BLOCKS)
def test_the_definition_is_that_of_the_gguf_package(kind):
    """The decoders in tests/oracle against the package's, where it is there (make test-full)."""
    import gguf

    data = gguf_files.random_blocks(kind, SHAPE, 7)
    theirs = gguf.quants.dequantize(np.frombuffer(data, np.uint8).reshape(SHAPE[0], -1), getattr(gguf.GGMLQuantizationType, kind))
    assert_same_bits(gguf_files.decode(kind, SHAPE, data), torch.from_numpy(theirs.copy()), kind)


WRITTEN = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]
SEARCHED = ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "MXFP4"]
# numbers that all of them can hold, and the largest error of one that they cannot
EQUAL, UNEQUAL, TOLERANCE = [0.0, 0.5, -0.25, 48.0, -3 * 2.0**-20], 0.1234567, {"MXFP4": 0.2}


def searched_matrices():
    """Matrices for the types whose scales are searched, by what is hard about them."""
    random = torch.Generator().manual_seed(11)
    normal = torch.randn((24, 512), generator=random)
    return {
        "model": matrix(5, (24, 512)), "above": normal.abs() * 0.02 + 0.01, "sparse": normal * 0.02 * (torch.rand((24, 512), generator=random) < 0.3),
        "heavy": normal / torch.randn((24, 512), generator=random).abs().clamp(min=0.05), "tiny": normal * 1e-6, "large": normal * 3e4,
        "one": torch.zeros(24, 512).index_fill(1, torch.tensor([7, 300]), -0.3), "equal": torch.full((24, 512), UNEQUAL) * torch.arange(1, 25)[:, None],
    }


def decoded_blocks(kind, seed):
    """Numbers of random blocks with positive scales."""
    shape = [32, 512]
    return gguf_files.decode(kind, shape, gguf_files.random_blocks(kind, shape, seed))


@pytest.fixture(scope="module")
def encoded(tmp_path_factory):
    jobs = PackJobs(tmp_path_factory.mktemp("encoded"))
    weight = matrix(5, (16, 512))
    for kind in [*WRITTEN, "F16", "BF16", "IQ2_S"]:
        jobs.add(kind, weight, gguf_type=kind)
    for kind in [*WRITTEN, *SEARCHED]:
        jobs.add(f"{kind} beyond", weight * 1e38, gguf_type=kind)
        jobs.add(f"{kind} nan", weight.clone().index_fill(1, torch.tensor([9]), float("nan")), gguf_type=kind)
        jobs.add(f"{kind} odd", weight[:, :500], gguf_type=kind)
    for kind in SEARCHED:
        for name, numbers in searched_matrices().items():
            jobs.add(f"{kind} {name}", numbers, gguf_type=kind)
        for seed in (1, 2):
            jobs.add(f"{kind} again {seed}", decoded_blocks(kind, seed), gguf_type=kind)
        for number in EQUAL:
            jobs.add(f"{kind} {number}", torch.full((2, 512), number), gguf_type=kind)
    jobs.run()
    jobs.twice = PackJobs(tmp_path_factory.mktemp("twice"))
    for kind in SEARCHED:
        jobs.twice.add(kind, jobs.packed(f"{kind} heavy")[1].float(), gguf_type=kind)
    jobs.twice.run()
    return jobs, weight


@pytest.mark.parametrize("kind", WRITTEN)
def test_blocks_are_written_to_the_bit(kind, encoded):
    jobs, weight = encoded
    tensors, unpacked = jobs.packed(kind)
    expected = gguf_files.encode_q8_0(weight) if kind == "Q8_0" else gguf_files.encode_whole(kind, weight)
    assert tensors["blocks"].numpy().tobytes() == expected
    assert_same_bits(unpacked, gguf_files.decode(kind, list(weight.shape), expected).double(), kind)


def errors_of(ours, weight, kind):
    """The sum of squared errors of each block."""
    return (ours.double() - weight.double()).reshape(-1, gguf_files.TYPES[kind][1]).square().sum(dim=1)


@pytest.mark.parametrize("name", searched_matrices())
@pytest.mark.parametrize("kind", SEARCHED)
def test_searched_blocks_are_at_least_as_near_as_those_of_a_plain_search(kind, name, encoded):
    weight = searched_matrices()[name]
    tensors, unpacked = encoded[0].packed(f"{kind} {name}")
    assert_same_bits(unpacked, gguf_files.decode(kind, list(weight.shape), tensors["blocks"].numpy().tobytes()).double(), kind)
    ours, plain = (errors_of(numbers, weight, kind) for numbers in (unpacked, torch.from_numpy(gguf_search.decoded(kind, weight))))
    assert ours.sum() <= plain.sum()
    assert (ours <= plain * 1.01).all(), (ours / plain).max()


@pytest.mark.parametrize("kind", SEARCHED)
def test_numbers_of_blocks_are_found_again(kind, encoded):
    jobs, _ = encoded
    for seed in (1, 2):
        assert torch.equal(jobs.packed(f"{kind} again {seed}")[1], decoded_blocks(kind, seed).double())
    assert torch.equal(jobs.twice.packed(kind)[1], jobs.packed(f"{kind} heavy")[1])


@pytest.mark.parametrize("kind", SEARCHED)
def test_equal_numbers_are_kept(kind, encoded):
    for number in EQUAL:
        assert torch.equal(encoded[0].packed(f"{kind} {number}")[1], torch.full((2, 512), number, dtype=torch.float64)), number
    expected = searched_matrices()["equal"].double()
    error = (encoded[0].packed(f"{kind} equal")[1] - expected).abs() / expected
    assert error.max() <= TOLERANCE.get(kind, 2**-11)


@pytest.mark.parametrize("kind", [*WRITTEN, *SEARCHED])
def test_numbers_that_no_block_has_are_refused(kind, encoded):
    jobs, _ = encoded
    assert "expected finite numbers" in jobs.refusal(f"{kind} nan", exit_code=5)
    assert "whole blocks" in jobs.refusal(f"{kind} odd")
    if kind != "MXFP4":  # has scales up to 2^126
        assert f"{kind} can hold" in jobs.refusal(f"{kind} beyond", exit_code=5)


def test_what_cannot_be_written_is_refused(encoded):
    jobs, weight = encoded
    assert_same_bits(jobs.packed("BF16")[1], weight.bfloat16().double(), "BF16")
    assert "IQ2_S" in jobs.refusal("IQ2_S")


@pytest.fixture(scope="module")
def logits(tmp_path_factory):
    """Of each family lancet's logits for the folder and for the GGUF file made of it."""
    root = tmp_path_factory.mktemp("gguf")
    folders = []
    for name in FAMILIES:
        make = checkpoints.make_checkpoint if name in checkpoints.VARIANTS else make_checkpoint
        folder = make(name, root / name, TOKENIZER)
        if name in UNSAID:
            config = json.loads((folder / "config.json").read_text()) | UNSAID[name]
            (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not None or key == "sliding_window"}))
        gguf_files.from_checkpoint(folder, root / f"{name}.gguf", older=name.endswith("_older"))
        folders += [folder, root / f"{name}.gguf"]
    batch = rows([1, 13, 40])
    jobs = {f"{i}": dict(folder=str(folder), rows=batch, dtype="f32", out=str(root / f"{i}.safetensors")) for i, folder in enumerate(folders)}
    answers = answer_jobs("dump_logits", jobs, root)
    found = {}
    for i, name in enumerate(FAMILIES):
        pair = [answers[str(2 * i)], answers[str(2 * i + 1)]]
        found[name] = pair if any(answer != len(batch) for answer in pair) else [load_file(root / f"{2 * i + k}.safetensors") for k in (0, 1)]
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_of_the_file_are_those_of_the_folder(name, logits):
    ours, expected = logits[name][1], logits[name][0]
    assert "error" not in ours and "error" not in expected, (expected, ours)
    assert_rows_close([ours[key] for key in sorted(ours)], [expected[key] for key in sorted(expected)], 1e-9)


# matrices whose rows lie in another order, are turned or have parts, and whose rows are whole blocks
IN_BLOCKS = {"gpt2": {}, "neox": {}, "falcon_two_norms": dict(ffn_hidden_size=64), "gpt_oss": dict(intermediate_size=32, swiglu_limit=7.0), "qwen35": {}}
IN_BLOCKS["deepseek_v2"] = dict(kv_lora_rank=32, qk_nope_head_dim=32, v_head_dim=32)


@pytest.mark.parametrize("name", IN_BLOCKS)
def test_blocks_of_a_file_are_the_numbers_that_they_stand_for(name, tmp_path, monkeypatch):
    """Logits of a file in Q8_0, with experts in MXFP4, against those of the file with the decoded numbers in F32."""
    variant = VARIANTS[name]
    monkeypatch.setitem(VARIANTS, name, dataclasses.replace(variant, config=variant.config | IN_BLOCKS[name]))
    folder = make_checkpoint(name, tmp_path / "folder", TOKENIZER)
    config, weights = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
    blocks, numbers = {}, {}
    for i, (tensor, data) in enumerate(gguf_files.tensors_of(config, weights).items()):
        shape, in_blocks = list(data.shape), data.dim() > 1 and data.shape[-1] % 32 == 0 and not tensor.endswith(("ffn_gate_inp.weight", "position_embd.weight", ".bias"))
        kind = "F32" if not in_blocks else "MXFP4" if "_exps" in tensor else "Q8_0"
        flat = [data.numel() // shape[-1], shape[-1]]
        made = gguf_files.plain_bytes(data) if kind == "F32" else gguf_files.encode_q8_0(data) if kind == "Q8_0" else gguf_files.random_blocks(kind, flat, i)
        decoded = data if kind == "F32" else gguf_files.decode(kind, flat, made).reshape(shape)
        blocks[tensor], numbers[tensor] = (kind, shape, made), ("F32", shape, gguf_files.plain_bytes(decoded))
    for file, tensors in (("blocks", blocks), ("numbers", numbers)):
        (tmp_path / f"{file}.gguf").write_bytes(gguf_files.gguf_bytes(gguf_files.metadata_of(config)[0], tensors))
    assert {kind for kind, _, _ in blocks.values()} >= ({"Q8_0", "MXFP4"} if name == "gpt_oss" else {"Q8_0"})
    ours, expected = lancet_logits_of([tmp_path / "blocks.gguf", tmp_path / "numbers.gguf"], rows([1, 13, 40]), "f32", tmp_path)
    assert_rows_close(ours, expected, 1e-9)


def test_layers_that_predict_further_tokens_are_left_aside(tmp_path):
    """They come last, and metadata counts them among the layers."""
    folder = make_checkpoint("qwen35", tmp_path / "folder", TOKENIZER)
    config = json.loads((folder / "config.json").read_text())
    tensors = {name: ("F32", list(tensor.shape), gguf_files.plain_bytes(tensor)) for name, tensor in
               gguf_files.tensors_of(config, load_file(folder / "model.safetensors")).items()}
    metadata, layers = gguf_files.metadata_of(config)[0], config["num_hidden_layers"]
    further = {f"blk.{layers}.{name}": tensors[f"blk.3.{name}"] for name in ("attn_norm.weight", "attn_q.weight", "ffn_down.weight")}
    further |= {f"blk.{layers}.nextn.eh_proj.weight": ("F32", [32, 64], gguf_files.plain_bytes(torch.ones(32, 64)))}
    counted = {"qwen35.block_count": layers + 1, "qwen35.nextn_predict_layers": 1}
    (tmp_path / "plain.gguf").write_bytes(gguf_files.gguf_bytes(metadata, tensors))
    (tmp_path / "further.gguf").write_bytes(gguf_files.gguf_bytes(metadata | counted, tensors | further))
    (tmp_path / "uncounted.gguf").write_bytes(gguf_files.gguf_bytes(metadata, tensors | further))
    files = [tmp_path / f"{name}.gguf" for name in ("further", "plain", "uncounted")]
    ours, expected, refused = lancet_logits_of_all(files, rows([13]), "f32", tmp_path)
    assert torch.equal(ours[0], expected[0])
    assert f"blk.{layers}" in refused or "nextn" in refused, refused


def test_a_split_model_is_that_of_one_file(tmp_path):
    folder = make_checkpoint("qwen3", tmp_path / "qwen3", TOKENIZER)
    config = json.loads((folder / "config.json").read_text())
    metadata, _, _ = gguf_files.metadata_of(config)
    tensors = {name: ("F32", list(tensor.shape), gguf_files.plain_bytes(tensor)) for name, tensor in
               gguf_files.tensors_of(config, load_file(folder / "model.safetensors")).items()}
    names, cut = sorted(tensors), len(tensors) // 3
    for i, part in enumerate((names[:cut], names[cut:])):
        own = {"split.no": i, "split.count": 2, "split.tensors.count": len(tensors)}
        data = gguf_files.gguf_bytes((metadata if i == 0 else {}) | own, {name: tensors[name] for name in part})
        (tmp_path / f"m-0000{i + 1}-of-00002.gguf").write_bytes(data)
    (tmp_path / "one.gguf").write_bytes(gguf_files.gguf_bytes(metadata, tensors))
    batch = [[random.Random(3).randrange(3, 2000) for _ in range(9)]]
    split, one = lancet_logits_of([tmp_path / "m-00001-of-00002.gguf", tmp_path / "one.gguf"], batch, "f32", tmp_path)
    assert torch.equal(split[0], one[0])


def test_a_tokenizer_of_the_metadata_is_the_models_own(tmp_path):
    """SentencePiece's pieces with scores, against the demo's tokenizer.json, on texts of all kinds."""
    texts = [*request_texts(), *fuzz_texts(400)]
    gguf_files.demo_model(DEMO, tmp_path / "demo.gguf", "BF16")
    ours, expected = (run_tool(path, texts) for path in (tmp_path / "demo.gguf" / "tokenizer.json", DEMO / "tokenizer.json"))
    assert [answer.get("ids") for answer in ours] == [answer.get("ids") for answer in expected]
    assert [answer.get("text") for answer in ours] == [answer.get("text") for answer in expected]


FUZZED = 20_000 if os.environ.get("LANCET_TEST_FULL") else 1_000
SMALL_TOKENIZER = {
    "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["<unk>", "a", "b", "ab", " ", "abb"], "tokenizer.chat_template": "{{ x }}",
    "tokenizer.ggml.scores": [0.0, -1.0, -2.0, -3.0, -4.0, -5.0], "tokenizer.ggml.token_type": [2, 1, 1, 1, 4, 1], "tokenizer.ggml.bos_token_id": 1,
}


def fuzzed(whole, rng):
    """Bytes of the head changed, put in, taken out, or the file cut."""
    data = bytearray(whole)
    for _ in range(rng.randint(1, 3)):
        at, way = rng.randrange(min(len(data), 1500)), rng.randrange(6)
        if way == 0:
            data[at] = rng.randrange(256)
        elif way == 1:
            data[at : at + 8] = rng.choice([2**64 - 1, 2**63, 2**32, rng.randrange(300)]).to_bytes(8, "little")
        elif way == 2:
            del data[at : at + rng.randint(1, 9)]
        elif way == 3:
            data[at:at] = bytes([rng.randrange(256)]) * rng.randint(1, 9)
        elif way == 4:
            begin = rng.randrange(len(data))
            data[at:at] = data[begin : begin + rng.randrange(64)]
        else:
            del data[at + 1 :]
    return bytes(data)


def test_fuzzed_files_are_read_or_refused(tmp_path):
    """With all that is made of a file: config.json, the tokenizer's texts, the names of weights."""
    sizes = {"block_count": 1, "embedding_length": 64, "attention.head_count": 2, "feed_forward_length": 64, "context_length": 64}
    sizes["attention.layer_norm_rms_epsilon"] = 1e-5
    metadata = {"general.architecture": "llama"} | {f"llama.{key}": size for key, size in sizes.items()} | SMALL_TOKENIZER
    shapes = {"token_embd": ("Q8_0", [6, 64]), "blk.0.attn_q": ("Q4_0", [64, 64]), "blk.0.ffn_down": ("Q5_1", [64, 64])}
    whole = gguf_files.gguf_bytes(metadata, {f"{name}.weight": (kind, shape, gguf_files.random_blocks(kind, shape, 1)) for name, (kind, shape) in shapes.items()})
    rng, jobs = random.Random(7), {}
    for i in range(FUZZED):
        path = tmp_path / f"{i}.gguf"
        path.write_bytes(fuzzed(whole, rng))
        jobs[str(i)] = dict(folder=str(path), shapes={NAME: [64, 64]}, dtypes=["f32"], out=str(tmp_path / "out.safetensors"))
    answers = answer_jobs("dump_weights", jobs, tmp_path)
    codes = [answer.get("exit_code", 0) if "error" in answer else 0 for answer in answers.values()]
    assert set(codes) == {0, 3} and codes.count(0) > FUZZED // 50
