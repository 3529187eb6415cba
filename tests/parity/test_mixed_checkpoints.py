"""Checkpoints of which some quantised matrices lie in full precision: their configurations by transformers' own decisions, their tensors
by safetensors, and what the model computes, to the bit."""
import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from engine import answer_jobs, lancet_logits_of
from family_checkpoints import SIZES
from safetensors.torch import load_file, save_file
from test_export import read_raw
from test_families import rows
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.pytorch_utils import Conv1D
from transformers.quantizers.base import HfQuantizer
from transformers.quantizers.quantizers_utils import should_convert_module

# of layers 1 and 10 to 12, whose names begin alike, and of one whose name is the beginning of others
EDITED = {
    "qwen3": ["model.layers.1.mlp.down_proj", "model.layers.10.mlp.up_proj"],
    "gpt_neox": ["gpt_neox.layers.1.mlp.dense_4h_to_h", "gpt_neox.layers.11.attention.dense"],
    "gpt2": ["transformer.h.1.mlp.c_proj", "transformer.h.10.mlp.c_fc"],
}
LISTS = {
    "bitsandbytes": ("llm_int8_skip_modules", dict(load_in_8bit=True)),
    "awq": ("modules_to_not_convert", dict(bits=4)),
    "fp8": ("modules_to_not_convert", {}),
    "fbgemm_fp8": ("modules_to_not_convert", {}),
}
GROUPS = dict(config_groups=dict(all=dict(targets=["Linear"], weights=dict(num_bits=4))), format="pack-quantized")


def naming_job(settings, modules, others):
    """For with_unquantised()."""
    config = json.dumps(dict(hidden_size=8, quantization_config=settings, rms_norm_eps=1e-6))
    return dict(config=config, modules=modules, others=others)


def settings_of(answer, job):
    assert isinstance(answer, str), answer
    read, config = json.loads(answer), json.loads(job["config"])
    assert list(read) == list(config) and read | dict(quantization_config=0) == config | dict(quantization_config=0)
    return read["quantization_config"]


def with_unquantised(settings, modules, others, scratch):
    job = naming_job(settings, modules, others)
    return settings_of(answer_jobs("mixed_checkpoint", {"a": job}, scratch)["a"], job)


def without_weights(model_type):
    config = AutoConfig.for_model(model_type, **SIZES[model_type])
    config.num_hidden_layers = 13
    if model_type == "qwen3":
        config.layer_types = ["full_attention"] * 13
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def linear_names(model):
    return {name for name, module in model.named_modules() if isinstance(module, (torch.nn.Linear, Conv1D))}


def converted(model, settings):
    """The modules that transformers replaces by quantised ones, as its quantizers ask."""
    method = settings["quant_method"]
    skipped = HfQuantizer.get_modules_to_not_convert(model, settings.get(LISTS[method][0]), model._keep_in_fp32_modules, method == "awq")
    return {name for name in linear_names(model) if should_convert_module(name, skipped)}


CASES = [(model_type, method, given) for model_type in EDITED for method in LISTS for given in ("absent", "empty", "head")]


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Of every case the model, its settings, the modules that these convert, and both settings in which EDITED are named."""
    models, cases, jobs = {model_type: without_weights(model_type) for model_type in EDITED}, {}, {}
    for case in CASES:
        model_type, method, given = case
        key, others = LISTS[method]
        settings = dict(quant_method=method) | others
        if given != "absent":
            settings[key] = ["lm_head"] if given == "head" else []
        before = converted(models[model_type], settings)
        cases[case] = models[model_type], settings, before
        for known in ([], sorted(before - set(EDITED[model_type]))):
            jobs[f"{case} {len(known) > 0}"] = naming_job(settings, EDITED[model_type], known)
    answers = answer_jobs("mixed_checkpoint", jobs, tmp_path_factory.mktemp("named"))
    return {case: (*cases[case], [settings_of(answers[key], jobs[key]) for key in (f"{case} False", f"{case} True")]) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_transformers_leaves_exactly_these_modules_alone(case, named):
    model, settings, before, afters = named[case]
    key, edited = LISTS[case[1]][0], EDITED[case[0]]
    assert set(edited) < before
    for after in afters:
        now = converted(model, after)
        assert before - now == set(edited) and now < before, after
        assert list(after)[: len(settings)] == list(settings)
    plain = [name for name in afters[-1][key] if name in edited]
    assert plain == edited, "vLLM and earlier versions of transformers compare names"


def test_names_that_begin_others_become_expressions(tmp_path):
    model = without_weights("qwen3")
    model.model.layers[1].mlp.down = torch.nn.Linear(2, 2, device="meta")  # down_proj begins with it
    settings = dict(quant_method="fp8", modules_to_not_convert=["lm_head"])
    before = converted(model, settings)
    edited = ["model.layers.1.mlp.down"]
    after = with_unquantised(settings, edited, sorted(before - set(edited)), tmp_path)
    assert before - converted(model, after) == set(edited)


def dynamic_get(dynamic, name):
    """GPTQModel, quantization/config.py: False for modules that are not quantised, the settings of others, or None."""
    for pattern, settings in (dynamic or {}).items():
        if pattern.startswith("-:"):
            if re.match(pattern.removeprefix("-:"), name):
                return False
        elif re.match(pattern.removeprefix("+:"), name):
            return settings
    return None


@pytest.mark.parametrize("dynamic", [None, {}, {r"+:.*\.mlp\..*": dict(bits=8), "-:.*q_proj": {}}], ids=["absent", "empty", "given"])
def test_gptq(dynamic, tmp_path):
    names, edited = linear_names(without_weights("qwen3")), EDITED["qwen3"]
    settings = dict(quant_method="gptq", bits=4) | (dict(dynamic=dynamic) if dynamic is not None else {})
    after = with_unquantised(settings, edited, [], tmp_path)
    for name in names:
        assert dynamic_get(after["dynamic"], name) == (False if name in edited else dynamic_get(dynamic, name)), name


@pytest.mark.parametrize("ignore", [None, ["lm_head", "re:.*q_proj"]], ids=["absent", "given"])
def test_compressed_tensors(ignore, tmp_path):
    settings = dict(quant_method="compressed-tensors") | GROUPS | (dict(ignore=ignore) if ignore else {})
    after = with_unquantised(settings, EDITED["qwen3"], [], tmp_path)
    assert after == settings | dict(ignore=(ignore or []) + EDITED["qwen3"])  # names there are whole names


def shard(folder):
    """Cuts the model's only file in two, so that parts of one matrix lie in both, and writes their index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names, shards = sorted(tensors), {}
    for number, some in enumerate((names[::2], names[1::2])):
        file = f"model-{number + 1:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in some}, folder / file, metadata={"format": "pt"})
        shards |= {name: file for name in some}
    size = sum(tensor.nbytes for tensor in tensors.values())
    index = dict(metadata=dict(total_size=size), weight_map=shards)
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def all_tensors(folder):
    found = {}
    for file in sorted(folder.glob("*.safetensors")):
        more = load_file(file)
        assert not set(found) & set(more)
        found |= more
    return found


@pytest.mark.parametrize("sharded", [False, True], ids=["single", "sharded"])
@pytest.mark.parametrize("name", ["nf4", "int8", "gptq-4", "awq", "fp8-blocks", "compressed-4"])
def test_an_unpacked_matrix_in_the_place_of_its_parts(name, sharded, twins_of, tmp_path):
    folder, twin = twins_of("qwen3", name)
    if sharded:
        folder = Path(shutil.copytree(folder, tmp_path / "quantised"))
        shard(folder)
    plain = load_file(twin / "model.safetensors")
    edited = ["model.layers.1.mlp.down_proj", "model.layers.2.self_attn.q_proj"]
    shapes = {module: list(plain[module + ".weight"].shape) for module in edited}
    target = tmp_path / "mixed"
    config = (folder / "config.json").read_text()
    job = dict(folder=str(folder), target=str(target), dtype="f32", shapes=shapes, config=config, modules=edited)
    assert answer_jobs("mixed_checkpoint", {"a": job}, tmp_path)["a"] == (target / "config.json").read_text()

    before, after = all_tensors(folder), all_tensors(target)
    parts = {key for key in before if any(key.startswith(module + ".") for module in edited)}
    added = {module + ".weight" for module in edited}
    assert set(after) == set(before) - parts | added and parts
    for key, tensor in after.items():
        expected = plain[key] if key in added else before[key]
        assert tensor.dtype == expected.dtype and tensor.shape == expected.shape, key
        assert torch.equal(*(some.reshape(-1).view(torch.uint8) for some in (tensor, expected))), key
    for file in target.glob("*.safetensors"):
        metadata, raw = read_raw(file)
        assert metadata["format"] == "pt"
    if sharded:
        index = json.loads((target / "model.safetensors.index.json").read_text())
        assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in after.values())
        assert index["weight_map"] == {key: file.name for file in target.glob("*.safetensors") for key in load_file(file)}
    ours, theirs = lancet_logits_of([target, twin], rows([2, 13]), "f32", tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
