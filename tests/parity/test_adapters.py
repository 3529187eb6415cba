"""Adapters as PEFT loads them: a model with the adapter computes what the model does whose weights were changed themselves."""
import json
import shutil

import pytest
import torch
from engine import ROOT, answer_jobs, assert_rows_close, transformers_logits
from family_checkpoints import join_experts, make_checkpoint
from safetensors.torch import load_file, save_file
from test_families import rows
from transformers import AutoModelForCausalLM

peft = pytest.importorskip("peft")
TOLERANCE = 1e-6  # NMSE of logits; both in f32
DEMO = ROOT / "data" / "demo-model"
LENGTHS = [2, 13, 40]
LAYER = 1

# The model, and of each edited weight the tensor that it is stored in with the way from its change [out, in] to that tensor's.


def plain(change, stored):
    return change


def transposed(change, stored):
    return change.T


def rows_from(begin):
    def put(change, stored):
        whole = torch.zeros_like(stored, dtype=change.dtype)
        whole[begin : begin + len(change)] = change
        return whole

    return put


def columns_from(begin):
    def put(change, stored):
        whole = torch.zeros_like(stored, dtype=change.dtype)
        whole[:, begin : begin + len(change)] = change.T
        return whole

    return put


def of_heads(part, heads):
    """GPT-NeoX: query, key and value of each head in turn."""

    def put(change, stored):
        whole = torch.zeros_like(stored, dtype=change.dtype).unflatten(0, (heads, 3, -1))
        whole[:, part] = change.unflatten(0, (heads, -1))
        return whole.flatten(0, 2)

    return put


CASES = {
    "demo": {
        "model.layers.0.mlp.down_proj.weight": ("model.layers.0.mlp.down_proj.weight", plain),
        "model.layers.1.mlp.down_proj.weight": ("model.layers.1.mlp.down_proj.weight", plain),
        "model.layers.1.self_attn.v_proj.weight": ("model.layers.1.self_attn.v_proj.weight", plain),
    },
    "gpt2": {
        "transformer.h.1.mlp.c_proj.weight": ("transformer.h.1.mlp.c_proj.weight", transposed),
        "transformer.h.1.mlp.c_fc.weight": ("transformer.h.1.mlp.c_fc.weight", transposed),
        "transformer.h.2.attn.c_attn.weight[v]": ("transformer.h.2.attn.c_attn.weight", columns_from(128)),
    },
    "phi3": {
        "model.layers.1.mlp.down_proj.weight": ("model.layers.1.mlp.down_proj.weight", plain),
        "model.layers.1.mlp.gate_up_proj.weight[up]": ("model.layers.1.mlp.gate_up_proj.weight", rows_from(96)),
        "model.layers.2.mlp.gate_up_proj.weight[gate]": ("model.layers.2.mlp.gate_up_proj.weight", rows_from(0)),
        "model.layers.2.mlp.gate_up_proj.weight[up]": ("model.layers.2.mlp.gate_up_proj.weight", rows_from(96)),
        "model.layers.0.self_attn.qkv_proj.weight[k]": ("model.layers.0.self_attn.qkv_proj.weight", rows_from(64)),
    },
    "neox": {
        "gpt_neox.layers.1.mlp.dense_4h_to_h.weight": ("gpt_neox.layers.1.mlp.dense_4h_to_h.weight", plain),
        "gpt_neox.layers.1.attention.query_key_value.weight[k]": ("gpt_neox.layers.1.attention.query_key_value.weight", of_heads(1, 4)),
    },
}


def folder_of(name, tmp_path):
    return DEMO if name == "demo" else make_checkpoint(name, tmp_path / "base", DEMO)


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def write_adapter(folder, changes, scratch, **options):
    save_file({key: tensor.contiguous() for key, tensor in changes.items()}, scratch / "changes.safetensors")
    options = dict(base_model=str(folder)) | options
    job = dict(model=str(folder), changes=str(scratch / "changes.safetensors"), out=str(scratch / "adapter"), options=options)
    return answer_jobs("adapter_files", {"a": job}, scratch)["a"]


def shape_of(name, stored, put):
    """[out, in] of the weight itself."""
    if put is transposed:
        return tuple(stored.T.shape)
    if "[" not in name:
        return tuple(stored.shape)
    if name.startswith("transformer."):
        return stored.shape[1] // 3, stored.shape[0]
    if name.startswith("gpt_neox."):
        return stored.shape[0] // 3, stored.shape[1]
    return (32 if "[k]" in name else 96), stored.shape[1]


def random_changes(weights, stored, kind):
    """Of each weight some low-rank changes or dense ones, of a size that shows; by the name in the file, and as sums in f64."""
    generator = torch.Generator().manual_seed(11)
    files, sums = {}, {}
    for name, (tensor, put) in weights.items():
        out, inputs = shape_of(name, stored[tensor], put)
        scale = 0.5 * stored[tensor].float().std() * (out * inputs) ** 0.5
        for number, rank in enumerate((1, 2)):
            left, right = torch.randn(out, rank, generator=generator), torch.randn(rank, inputs, generator=generator)
            left *= scale / (left @ right).norm()
            if kind == "dense" and number == 1:
                files[f"{name}|{number}|full"] = left @ right
            else:
                files |= {f"{name}|{number}|left": left, f"{name}|{number}|right": right}
            sums[name] = sums.get(name, 0) + left.double() @ right.double()
    return files, sums


def edited_copy(folder, target, weights, sums):
    """The model folder with the changes in its weights."""
    shutil.copytree(folder, target)
    tensors = load_file(target / "model.safetensors")
    for name, (tensor, put) in weights.items():
        tensors[tensor] = (tensors[tensor].double() + put(sums[name], tensors[tensor])).float()
    save_file({key: tensor.float().contiguous() for key, tensor in tensors.items()}, target / "model.safetensors", metadata={"format": "pt"})
    return target


def check_loads(folder, edited, adapter):
    """The adapter beside the model, and merged into it, against the changed model; it must not be without effect."""
    ids = rows(LENGTHS)
    expected = transformers_logits(load(edited), ids)
    base = transformers_logits(load(folder), ids)
    model = peft.PeftModel.from_pretrained(load(folder), adapter)
    assert all((a - b).square().sum() / b.square().sum() > 100 * TOLERANCE for a, b in zip(base, expected, strict=True))
    assert_rows_close(transformers_logits(model, ids), expected, TOLERANCE)
    merged = model.merge_and_unload()
    assert_rows_close(transformers_logits(merged, ids), expected, TOLERANCE)
    return merged


@pytest.mark.parametrize("kind", ["low_rank", "dense"])
@pytest.mark.parametrize("name", CASES)
def test_peft_computes_what_the_changed_model_does(name, kind, tmp_path):
    folder, weights = folder_of(name, tmp_path), CASES[name]
    stored = load_file(folder / "model.safetensors")
    changes, sums = random_changes(weights, stored, kind)
    report = write_adapter(folder, changes, tmp_path)
    assert report["rank"] == 8, report
    assert all(module["lost_norm"] <= 1e-6 * module["norm"] for module in report["modules"].values())
    edited = edited_copy(folder, tmp_path / "edited", weights, sums)
    check_loads(folder, edited, tmp_path / "adapter")


def test_no_other_module_is_touched(tmp_path):
    """Of layers 1 and 10 to 12: names that begin and end alike."""
    config = json.loads((DEMO / "config.json").read_text()) | dict(num_hidden_layers=13)
    net = AutoModelForCausalLM.from_config(type(load(DEMO).config).from_dict(config), dtype=torch.float32)
    net.save_pretrained(tmp_path / "base")
    name = "model.layers.1.mlp.down_proj.weight"
    weights = {name: (name, plain)}
    changes, sums = random_changes(weights, load_file(tmp_path / "base" / "model.safetensors"), "low_rank")
    write_adapter(tmp_path / "base", changes, tmp_path)
    model = peft.PeftModel.from_pretrained(load(tmp_path / "base"), tmp_path / "adapter")
    assert [module for module, _ in model.named_modules() if module.endswith("lora_A")] == ["base_model.model.model.layers.1.mlp.down_proj.lora_A"]


# ---- experts: transformers 5 stacks them, and PEFT stacks their pairs ----

EXPERTS = {"qwen3_moe": ("mlp.experts.{}.", dict(gate="gate_proj", up="up_proj", down="down_proj"))}
EXPERTS["mixtral"] = ("block_sparse_moe.experts.{}.", dict(gate="w1", up="w3", down="w2"))
EXPERTS |= {name: EXPERTS["qwen3_moe"] for name in ("deepseek_v2", "deepseek_v3", "ernie4_5_moe", "glm4_moe", "olmoe", "qwen3_next")}
# PEFT does not know their experts by the files' names.
BY_PARAMETER = {"qwen2_moe": ("mlp.experts.{}.", dict(down="down_proj")), "jamba": ("feed_forward.experts.{}.", dict(down="down_proj"))}
BY_PARAMETER |= {"lfm2_moe": ("feed_forward.experts.{}.", dict(down="w2")), "phimoe": ("block_sparse_moe.experts.{}.", dict(gate="w1", down="w2"))}
BY_PARAMETER["nemotron_h"] = ("mixer.experts.{}.", dict(down="down_proj"))
LAYER_OF_EXPERTS = {"nemotron_h": 3}


def change_of_experts(name, kinds, folder):
    """Of a new model some low-rank changes of a layer's experts, less the first: as files, and the tensors with them."""
    make_checkpoint(name, folder, DEMO)
    stored = load_file(folder / "model.safetensors")
    place, names = (EXPERTS | BY_PARAMETER)[name]
    generator, files, edited = torch.Generator().manual_seed(5), {}, dict(stored)
    for kind in kinds:
        pattern = f"model.layers.{LAYER_OF_EXPERTS.get(name, LAYER)}.{place}{names[kind]}.weight"
        in_file = pattern.replace("model.", "backbone.") if name == "nemotron_h" else pattern
        experts = [key for key in (in_file.format(e) for e in range(100)) if key in stored]
        matrices = [stored[key] for key in experts]
        axis = 1 if kind == "down" else 0
        whole = torch.cat(matrices, axis)
        left, right = torch.randn(whole.shape[0], 3, generator=generator), torch.randn(3, whole.shape[1], generator=generator)
        (right if axis else left.T)[:, : matrices[0].shape[axis]] = 0  # the first expert keeps its weights
        left *= 0.5 * whole.norm() / (left @ right).norm()
        weight = pattern.format("*")
        files |= {f"{weight}|0|left": left, f"{weight}|0|right": right}
        for key, change in zip(experts, (left.double() @ right.double()).chunk(len(experts), axis), strict=True):
            edited[key] = (stored[key].double() + change).float()
    return files, edited


def check_experts(name, kinds, scratch):
    folder = scratch / "base"
    files, edited = change_of_experts(name, kinds, folder)
    report = write_adapter(folder, files, scratch)
    assert report["rank"] == 8, report
    shutil.copytree(folder, scratch / "edited")
    save_file({key: tensor.contiguous() for key, tensor in edited.items()}, scratch / "edited" / "model.safetensors", metadata={"format": "pt"})
    check_loads(folder, scratch / "edited", scratch / "adapter")


@pytest.mark.parametrize("kinds", [["down"], ["up"], ["gate", "up", "down"]], ids="-".join)
@pytest.mark.parametrize("name", ["qwen3_moe", "mixtral"])
def test_experts(name, kinds, tmp_path):
    check_experts(name, kinds, tmp_path)


@pytest.mark.parametrize("name", sorted((EXPERTS | BY_PARAMETER).keys() - {"qwen3_moe", "mixtral"}))
def test_experts_of_other_families(name, tmp_path):
    check_experts(name, ["down"], tmp_path)
    settings = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert bool(settings.get("target_parameters")) == (name in BY_PARAMETER) != bool(settings["target_modules"])


def test_experts_by_parameter_are_read_in_either_form(tmp_path):
    """Adapters from before transformers 5 have a module for each expert."""
    folder, adapter = tmp_path / "base", tmp_path / "adapter"
    files, _ = change_of_experts("qwen2_moe", ["down"], folder)
    write_adapter(folder, files, tmp_path)
    read = read_sums(folder, tmp_path)
    (name,) = read
    expected = (files[f"{name}|0|left"] @ files[f"{name}|0|right"]).double()
    assert (read[name] - expected).norm() <= 1e-6 * expected.norm()

    settings = json.loads((adapter / "adapter_config.json").read_text())
    (parameter,) = settings.pop("target_parameters")
    stem = parameter.removesuffix(".down_proj")
    pair = load_file(adapter / "adapter_model.safetensors")
    rows, columns = (pair[f"base_model.model.{stem}.lora_{side}.weight"] for side in "AB")
    rows, columns = rows.chunk(len(rows) // settings["r"]), columns.unflatten(1, (settings["r"], -1)).unbind(2)
    modules = [f"{stem}.{expert}.down_proj" for expert in range(len(rows))]
    for side, factors in (("A", rows), ("B", columns)):
        pair |= {f"base_model.model.{module}.lora_{side}.weight": factor.contiguous() for module, factor in zip(modules, factors, strict=True)}
        del pair[f"base_model.model.{stem}.lora_{side}.weight"]
    save_file(pair, adapter / "adapter_model.safetensors")
    (adapter / "adapter_config.json").write_text(json.dumps(settings | dict(target_modules=modules)))
    assert torch.equal(read_sums(folder, tmp_path)[name], read[name])


def test_modules_have_the_names_of_transformers(tmp_path):
    """Nemotron-H's, whose files have others."""
    folder = make_checkpoint("nemotron_h", tmp_path / "base", DEMO)
    stored, name = load_file(folder / "model.safetensors"), "layers.2.mixer.o_proj.weight"
    changes, sums = random_changes({f"backbone.{name}": (f"backbone.{name}", plain)}, stored, "low_rank")
    report = write_adapter(folder, {key.replace("backbone.", "model."): change for key, change in changes.items()}, tmp_path)
    assert report["rank"] == 8, report
    check_loads(folder, edited_copy(folder, tmp_path / "edited", {f"backbone.{name}": (f"backbone.{name}", plain)}, sums), tmp_path / "adapter")


def test_output_projections_of_mixers_are_refused_where_peft_refuses_them(tmp_path):
    folder, name = make_checkpoint("falcon_h1", tmp_path / "base", DEMO), "model.layers.1.mamba.out_proj.weight"
    changes, _ = random_changes({name: (name, plain)}, load_file(folder / "model.safetensors"), "low_rank")
    assert "PEFT refuses the mixers' output projections of Falcon-H1" in write_adapter(folder, changes, tmp_path)["error"]


def test_gates_of_experts_by_parameter_are_refused(tmp_path):
    files, _ = change_of_experts("phimoe", ["gate"], tmp_path / "base")
    assert "PEFT does not find gates and ups of experts in Phi-3.5-MoE" in write_adapter(tmp_path / "base", files, tmp_path)["error"]


IN_ONE_TENSOR = ["granite_hybrid", "granite_moe", "gpt_oss", "lfm2_moe", "qwen3_5_moe", "qwen3_moe"]


def joined(name, folder):
    """A model with experts in one tensor, the tensors, and which has a layer's down projections."""
    make_checkpoint(name, folder, DEMO)
    if name.startswith(("lfm2", "qwen3")):
        join_experts(folder)
    stored = load_file(folder / "model.safetensors")
    ends = (f"layers.{LAYER}.block_sparse_moe.output_linear.weight", "experts.down_proj")
    return stored, next(key for key in stored if f".{LAYER}." in key and key.endswith(ends))


@pytest.mark.parametrize("name", IN_ONE_TENSOR)
def test_experts_in_one_tensor_have_one_pair(name, tmp_path):
    folder = tmp_path / "base"
    stored, tensor = joined(name, folder)
    turned = (lambda change: change.transpose(1, 2)) if name == "gpt_oss" else lambda change: change
    experts, out, inputs = turned(stored[tensor]).shape
    generator = torch.Generator().manual_seed(5)
    left, right = torch.randn(out, 3, generator=generator), torch.randn(3, experts * inputs, generator=generator)
    right[:, :inputs] = 0  # the first expert keeps its weights
    left *= 0.5 * stored[tensor].norm() / (left @ right).norm()
    files, whole = {f"{tensor}|0|left": left, f"{tensor}|0|right": right}, left.double() @ right.double()
    edited = stored | {tensor: (stored[tensor].double() + turned(whole.unflatten(1, (experts, inputs)).transpose(0, 1))).float()}
    if name == "qwen3_moe":  # beside a module
        other = f"model.layers.{LAYER}.self_attn.o_proj.weight"
        files |= {f"{other}|0|left": stored[other][:, :2].clone(), f"{other}|0|right": torch.ones(2, stored[other].shape[1])}
        edited[other] = stored[other] + stored[other][:, :2] @ torch.ones(2, stored[other].shape[1])
    report = write_adapter(folder, files, tmp_path)
    assert report["rank"] == 8, report
    settings = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert len(settings["target_parameters"]) == 1 and len(settings["target_modules"]) == (name == "qwen3_moe")
    shutil.copytree(folder, tmp_path / "edited")
    save_file({key: value.contiguous() for key, value in edited.items()}, tmp_path / "edited" / "model.safetensors", metadata={"format": "pt"})
    check_loads(folder, tmp_path / "edited", tmp_path / "adapter")
    read = read_sums(folder, tmp_path)
    assert (read[tensor].double() - whole).norm() <= 1e-6 * whole.norm()


@pytest.mark.parametrize("name", ["gpt_oss", "qwen3_moe"])
def test_adapters_of_parameters_are_read(name, tmp_path):
    _, tensor = joined(name, tmp_path / "base")
    config = dict(r=3, lora_alpha=6, target_modules=[], task_type="CAUSAL_LM")
    model = peft.get_peft_model(load(tmp_path / "base"), peft.LoraConfig(target_parameters=[tensor], **config))
    generator = torch.Generator().manual_seed(3)
    for key, parameter in model.named_parameters():
        if "lora_B" in key:
            parameter.copy_(0.05 * torch.randn(parameter.shape, generator=generator))
    model.save_pretrained(tmp_path / "adapter")
    merged, before = (net.get_parameter(tensor).double() for net in (model.merge_and_unload(), load(tmp_path / "base")))
    expected = (merged - before).transpose(1, 2) if name == "gpt_oss" else merged - before
    read = read_sums(tmp_path / "base", tmp_path)
    assert read.keys() == {tensor}
    assert (read[tensor].unflatten(1, (len(expected), -1)).transpose(0, 1) - expected).norm() <= 1e-5 * expected.norm() > 0


def test_other_parameters_are_refused_by_name(tmp_path):
    _, tensor = joined("qwen3_moe", tmp_path / "base")
    both = [tensor, tensor.replace("down_proj", "gate_up_proj")]
    config = peft.LoraConfig(r=3, target_modules=[], target_parameters=both, task_type="CAUSAL_LM")
    peft.get_peft_model(load(tmp_path / "base"), config).save_pretrained(tmp_path / "adapter")
    job = dict(model=str(tmp_path / "base"), adapter=str(tmp_path / "adapter"), out=str(tmp_path / "sums.safetensors"))
    answer = answer_jobs("adapter_files", {"a": job}, tmp_path)["a"]
    assert answer["exit_code"] == 2 and "target_parameters: expected names of experts' down_proj alone" in answer["error"], answer


# ---- reading what PEFT wrote ----


def read_sums(folder, scratch):
    """The changes that lancet reads of the adapter, each weight's sum."""
    job = dict(model=str(folder), adapter=str(scratch / "adapter"), out=str(scratch / "sums.safetensors"))
    names = answer_jobs("adapter_files", {"a": job}, scratch)["a"]
    assert isinstance(names, list), names
    return load_file(scratch / "sums.safetensors")


@pytest.mark.parametrize("rslora", [False, True])
@pytest.mark.parametrize("name, targets", [("demo", ["q_proj", "down_proj"]), ("gpt2", ["c_proj", "c_attn"]), ("phi3", ["gate_up_proj"])])
def test_adapters_of_peft_are_read(name, targets, rslora, tmp_path):
    folder = folder_of(name, tmp_path)
    fan_in_fan_out = name == "gpt2"
    config = peft.LoraConfig(r=4, lora_alpha=6, target_modules=targets, use_rslora=rslora, task_type="CAUSAL_LM", fan_in_fan_out=fan_in_fan_out)
    model = peft.get_peft_model(load(folder), config)
    generator = torch.Generator().manual_seed(3)
    for key, parameter in model.named_parameters():
        if "lora_B" in key:  # zeros until it is trained
            parameter.copy_(0.05 * torch.randn(parameter.shape, generator=generator))
    model.save_pretrained(tmp_path / "adapter")
    read = read_sums(folder, tmp_path)
    before, merged = load(folder).state_dict(), model.merge_and_unload().state_dict()
    changed = {key for key in before if not torch.equal(before[key], merged[key])}
    assert {name.split("[")[0] for name in read} == changed
    for key in changed:
        parts = sorted((name for name in read if name.split("[")[0] == key), key=lambda name: "qkv".find(name[-2]) if "attn" in name else name)
        whole = torch.cat([read[part] for part in parts])
        expected = (merged[key].double() - before[key].double()).T if fan_in_fan_out else merged[key].double() - before[key].double()
        assert (whole - expected).norm() <= 1e-5 * expected.norm(), key


def test_adapters_that_are_more_are_refused_by_name(tmp_path):
    config = peft.LoraConfig(r=4, target_modules=["q_proj"], use_dora=True, modules_to_save=["lm_head"], rank_pattern={"v_proj": 2}, task_type="CAUSAL_LM")
    peft.get_peft_model(load(DEMO), config).save_pretrained(tmp_path / "adapter")
    job = dict(model=str(DEMO), adapter=str(tmp_path / "adapter"), out=str(tmp_path / "sums.safetensors"))
    answer = answer_jobs("adapter_files", {"a": job}, tmp_path)["a"]
    assert answer["exit_code"] == 2
    for key in ("use_dora", "modules_to_save", "rank_pattern"):
        assert key in answer["error"], answer
