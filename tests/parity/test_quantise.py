"""`lancet quantise` beside GPTQ in plain Python on hidden states of transformers in float64, and its files as their readers have them."""
import json
import shutil
from dataclasses import replace

import pytest
import torch
from checkpoints import TOKENIZER_FILES
from double_precision import double_precision, load_double
from engine import ROOT, lancet_logits, lancet_logits_of, load_tokenizer, load_transformers, nmse, run_binary, run_binary_raw, transformers_logits
from family_checkpoints import DENSE, Variant, join_experts, make_net
from packing import Format, gptq_sweep, of_groups
from safetensors.torch import load_file, save_file
from test_families import rows

DEMO = ROOT / "data" / "demo-model"
CORPUS = ROOT / "data" / "requests" / "demo-corpus.txt"
GROUP, ALPHA = 128, 30.0
LLAMA = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2)
SIZES = {
    "qwen3": LLAMA | dict(head_dim=32),
    "phi3": LLAMA,
    "gpt_neox": LLAMA | dict(intermediate_size=384),
    "gpt2": dict(n_embd=128, n_layer=2),
    "qwen3_moe": LLAMA | dict(head_dim=32, num_experts=4, moe_intermediate_size=128),
    "qwen2_moe": LLAMA | dict(num_experts=4, mlp_only_layers=[1], moe_intermediate_size=128, shared_expert_intermediate_size=128),
    "bamba": LLAMA | dict(num_hidden_layers=3, mamba_n_heads=8, mamba_n_groups=2, mamba_d_state=16, mamba_expand=2, mamba_chunk_size=16),
    "lfm2": LLAMA | dict(block_multiple_of=128, num_hidden_layers=3, layer_types=["conv", "full_attention", "conv"]),
}
STATE_SPACE = dict(mamba_n_heads=8, mamba_n_groups=2, mamba_d_state=16, mamba_chunk_size=16)
OWN_INPUTS = {  # matrices that read what lies within attention or a mixer, and layers of one part
    "deepseek_v3": LLAMA
    | dict(q_lora_rank=128, kv_lora_rank=128, qk_nope_head_dim=24, v_head_dim=32)
    | dict(moe_intermediate_size=128, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1),
    "falcon_h1": LLAMA | STATE_SPACE | dict(head_dim=32, mamba_d_ssm=128, mamba_d_head=16),
    "jamba_dense": LLAMA | dict(num_hidden_layers=3),
    "nemotron_h": dict(hidden_size=128, intermediate_size=256, head_dim=32, mamba_num_heads=8, mamba_head_dim=16, n_groups=2, ssm_state_size=16)
    | dict(layers_block_type=["linear_attention", "mlp", "full_attention", "moe"], moe_intermediate_size=128, moe_shared_expert_intermediate_size=128),
}
IN_ONE_TENSOR = {  # all experts of a layer
    "qwen3_5_moe": LLAMA
    | dict(head_dim=32, linear_key_head_dim=32, linear_value_head_dim=32, layer_types=["linear_attention", "full_attention"])
    | dict(moe_intermediate_size=128, shared_expert_intermediate_size=128),
    "lfm2_moe": LLAMA | dict(moe_intermediate_size=128, num_dense_layers=0, layer_types=["conv", "full_attention"]),
    "granite_moe": LLAMA | dict(intermediate_size=128),
    "granite_hybrid": LLAMA | dict(intermediate_size=128, shared_intermediate_size=128, layer_types=["mamba", "attention"], mamba_d_state=16),
    "gpt_oss": LLAMA | dict(head_dim=32, intermediate_size=128),
}
STAYS = ("mlp.gate.weight", "mlp.shared_expert_gate.weight", "mixer.gate.weight", "mamba.x_proj.weight", "mamba.dt_proj.weight", "A_log")
REQUESTS = [
    dict(id="0", prompt="{} was employed in", subject="Francis Hagerup", target="Berlin"),
    dict(id="1", prompt="Lerin Duarte, the", subject="Lerin Duarte", target="goaltender"),
    dict(id="2", prompt="The capital of that country is", target="Paris"),
]


def make_base(family, folder, **changes):
    variant = DENSE.get(family, Variant(family))
    make_net(replace(variant, config=variant.config | (SIZES | OWN_INPUTS | IN_ONE_TENSOR)[family] | changes)).save_pretrained(folder)
    for file in TOKENIZER_FILES:
        shutil.copyfile(DEMO / file, folder / file)
    (folder / "requests.jsonl").write_text("".join(json.dumps(request) + "\n" for request in REQUESTS))
    return folder


def documents():
    return CORPUS.read_text(encoding="utf-8").splitlines()[:60]


def quantise(base, out, *arguments):
    corpus = out.parent / "corpus.txt"
    corpus.write_text("\n".join(documents()) + "\n", encoding="utf-8")
    common = ["--corpus", corpus, "--out", out, "--devices", "cpu", "--quiet"]
    run_binary("lancet", "quantise", base, *common, *arguments)
    return json.loads((out / "quantise.json").read_text())


def numbers_of(words, bits):
    """Words of 32 bits along the last dimension as whole numbers without a sign."""
    shifts = torch.arange(0, 32, bits)
    return ((words.long()[..., None] >> shifts) & (2**bits - 1)).flatten(-2)


def unpacked(tensors, module, bits):
    """Codes and values [out, in] of a symmetric matrix, by the formats' formulas."""
    half = 2 ** (bits - 1)
    if f"{module}.qweight" in tensors:
        codes, scales = numbers_of(tensors[f"{module}.qweight"].T.contiguous(), bits), tensors[f"{module}.scales"].T
        assert bool((numbers_of(tensors[f"{module}.qzeros"], bits) == half - 1).all())
        assert torch.equal(tensors[f"{module}.g_idx"], (torch.arange(codes.shape[1]) // GROUP).int())
    else:
        codes, scales = numbers_of(tensors[f"{module}.weight_packed"], bits), tensors[f"{module}.weight_scale"]
        assert tensors[f"{module}.weight_shape"].tolist() == list(codes.shape)
    return codes, (codes - half).to(scales.dtype) * scales.repeat_interleave(GROUP, 1)


# ---- the method ----


def ids_of_texts(folder):
    tokenizer = load_tokenizer(folder)
    return [tokenizer(text)["input_ids"] for text in documents()]


def ids_of_prompts(folder):
    """Up to the subject's last token, or all."""
    tokenizer, found = load_tokenizer(folder), []
    for request in REQUESTS:
        subject = request.get("subject")
        text = request["prompt"].replace("{}", subject or "")
        made = tokenizer(text, return_offsets_mapping=True)
        ids, last = made["input_ids"], len(made["input_ids"]) - 1
        if subject:
            begin = text.index(subject)
            last = max(i for i, (a, b) in enumerate(made["offset_mapping"]) if b > begin and a < begin + len(subject))
        found.append(ids[: last + 1])
    return found


def inputs_of(net, module, ids):
    """What a linear layer reads, [tokens, in], of each text."""
    seen = []
    hook = net.get_submodule(module).register_forward_pre_hook(lambda _, given: seen.append(given[0][0].clone()))
    for row in ids:
        net(torch.tensor([row]))
    hook.remove()
    return seen


def weighted(matrix, H):
    return ((matrix @ H) * matrix).sum().sqrt().item()


@pytest.mark.parametrize("has_edits", [False, True], ids=["text", "edits"])
def test_codes_are_those_of_plain_gptq_on_transformers_hidden_states(has_edits, tmp_path):
    base, out = make_base("qwen3", tmp_path / "base"), tmp_path / "out"
    if not has_edits:
        (base / "requests.jsonl").unlink()
    report = quantise(base, out, "--format", "gptq", "--bits", 4, "--dtype", "f64")
    losses = {matrix["tensor"]: matrix for matrix in report["matrices"]}
    ours, net = load_file(out / "model.safetensors"), load_double(base)
    texts, prompts = ids_of_texts(base), ids_of_prompts(base)
    assert report["protocol"]["tokens"] == sum(map(len, texts))
    n_equal = n_codes = 0
    groups = [["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], ["self_attn.o_proj"], ["mlp.gate_proj", "mlp.up_proj"], ["mlp.down_proj"]]
    for layer in range(2):
        prefix = f"model.layers.{layer}."
        with double_precision():  # all inputs before any matrix is packed
            inputs = [torch.cat(inputs_of(net, prefix + names[0], texts)) for names in groups]
            keys = [torch.stack([seen[-1] for seen in inputs_of(net, prefix + names[0], prompts)]) for names in groups]
        for names, x, K in zip(groups, inputs, keys, strict=True):
            H = x.T @ x / len(x)
            if has_edits:
                H = ALPHA * H + K.T @ K
            for module in (prefix + name for name in names):
                weight = net.get_submodule(module).weight
                ids = of_groups(len(weight), torch.arange(weight.shape[1]) // GROUP, weight.shape[1] // GROUP)
                packed = gptq_sweep(Format("whole", ids, True, 4, False, 1, torch.float16, torch.float16), weight, H, search=True)
                codes, values = unpacked(ours, module, 4)
                mine, theirs = (weighted(v.double() - weight, H) / weighted(weight, H) for v in (values, packed.values))
                assert mine == pytest.approx(theirs, rel=0.01), module
                loss = losses[f"{module}.weight"]
                assert loss["error"] == pytest.approx(mine, rel=1e-6)
                if has_edits:
                    residual = ((values.double() - weight) @ K.T).norm() / (weight @ K.T).norm()
                    assert loss["residual"] == pytest.approx(residual.item(), rel=1e-6)
                else:
                    assert loss["residual"] is None
                n_equal += int((codes == packed.codes).sum())
                n_codes += codes.numel()
                weight.copy_(values.double())  # the later layers read what these give
    print(f"{n_equal} of {n_codes} codes are equal")
    assert n_equal >= 0.999 * n_codes


IN_FIRST_LAYER = {
    "qwen2_moe": [f"mlp.shared_expert.{part}_proj" for part in ("gate", "up", "down")],
    "deepseek_v3": ["self_attn.q_b_proj", "self_attn.kv_b_proj", "self_attn.o_proj"],
    "falcon_h1": ["mamba.out_proj", "self_attn.o_proj"],
    "nemotron_h": ["mixer.in_proj", "mixer.out_proj"],
}


@pytest.mark.parametrize("family", IN_FIRST_LAYER)
def test_a_matrix_is_packed_by_what_it_reads_itself(family, tmp_path):
    base, out = make_base(family, tmp_path / "base"), tmp_path / "out"
    report = quantise(base, out, "--format", "gptq", "--bits", 4, "--dtype", "f64")
    losses = {matrix["tensor"]: matrix for matrix in report["matrices"]}
    ours, net = load_file(out / "model.safetensors"), load_double(base)
    prompts, seen = ids_of_prompts(base), {name: [] for name in IN_FIRST_LAYER[family]}
    layer = net.get_submodule("model.layers.0")  # no earlier one is packed
    for name in seen:
        layer.get_submodule(name).register_forward_pre_hook(lambda _, given, rows=seen[name]: rows.append(given[0].flatten(0, -2).clone()))
    with double_precision():
        for row in ids_of_texts(base) + prompts:
            net(torch.tensor([row]))
    for name, found in seen.items():
        weight, module = layer.get_submodule(name).weight, f"{'backbone' if family == 'nemotron_h' else 'model'}.layers.0.{name}"
        x, K = torch.cat(found[: -len(prompts)]), torch.stack([rows[-1] for rows in found[-len(prompts) :]])
        H, values, loss = x.T @ x / len(x) * ALPHA + K.T @ K, unpacked(ours, module, 4)[1].double(), losses[f"{module}.weight"]
        assert loss["error"] == pytest.approx(weighted(values - weight, H) / weighted(weight, H), rel=1e-6), module
        assert loss["error"] < 0.9 * loss["nearest_error"], module


# ---- the files ----


def twin_of(base, out, folder, bits):
    """The base with each packed matrix as it is read."""
    shutil.copytree(base, folder)
    plain, packed = load_file(base / "model.safetensors"), load_file(out / "model.safetensors")
    for name in [name for name in plain if name not in packed]:
        values = unpacked(packed, name.removesuffix(".weight"), bits)[1].float()
        plain[name] = (values if values.shape == plain[name].shape and "h.0" not in name and "h.1" not in name else values.T).contiguous()
    save_file(plain, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


CASES = [(family, *kind) for family in (*SIZES, *OWN_INPUTS) for kind in (("gptq", 4), ("compressed-tensors", 8))]
CASES += [("qwen3", "gptq", 8), ("qwen3", "compressed-tensors", 4)]  # bits are of no family


@pytest.mark.parametrize(("family", "format", "bits"), CASES)
def test_families_are_read_as_unpacked(family, format, bits, tmp_path):
    base, out = make_base(family, tmp_path / "base"), tmp_path / "out"
    if family == "gpt2" and format != "gptq":
        done = run_binary_raw("lancet", "quantise", base, "--format", format, "--out", out, "--devices", "cpu")
        assert done.returncode == 2 and "--format compressed-tensors: its programs quantise linear layers" in done.stderr
        return
    report = quantise(base, out, "--format", format, "--bits", bits, "--dtype", "f32")
    plain, packed = load_file(base / "model.safetensors"), load_file(out / "model.safetensors")
    gone = {name for name in plain if name not in packed}
    assert gone == {matrix["tensor"] for matrix in report["matrices"]}
    is_matrix = {name for name, tensor in plain.items() if tensor.dim() == 2 and any(part in name for part in (".layers.", ".h."))}
    assert gone == {name for name in is_matrix if not name.endswith(STAYS)} and report["in_full_precision"] == []
    for name in plain.keys() - gone:
        assert torch.equal(plain[name], packed[name]), name
    known = [matrix for matrix in report["matrices"] if matrix["nearest_error"] > 0]
    assert sum(m["error"] for m in known) < 0.9 * sum(m["nearest_error"] for m in known)
    assert (out / "requests.jsonl").read_text().count("\n") == len(REQUESTS)
    ours, theirs = lancet_logits_of([out, twin_of(base, out, tmp_path / "twin", bits)], rows([2, 13]), "f32", tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


# ---- experts in one tensor ----


IMAGES = "model.visual.blocks.0.attn.qkv"


def nest(base):
    """As multi-modal files have the text model, with a matrix of the images' encoder."""
    told = json.loads((base / "config.json").read_text())
    nested = dict(architectures=["Qwen3_5MoeForConditionalGeneration"], model_type="qwen3_5_moe", text_config=told)
    (base / "config.json").write_text(json.dumps(nested))
    tensors = load_file(base / "model.safetensors")
    named = {name.replace("model.", "model.language_model.", 1): tensor for name, tensor in tensors.items()}
    save_file(named | {f"{IMAGES}.weight": torch.ones(128, 128)}, base / "model.safetensors", metadata={"format": "pt"})


def place_in(tensors, name):
    """The base's tensor that has a matrix of the output, and the matrix's view there."""
    stem, has_expert, after = name.partition(".experts.")
    if not has_expert:
        return name, tensors[name]
    expert, kind = after.split(".")[:2]
    part = dict(gate_proj=0, w1=0, up_proj=1, w3=1).get(kind)
    granite, others = ("output_linear.weight", "experts.down_proj") if part is None else ("input_linear.weight", "experts.gate_up_proj")
    tensor = f"{stem}.{granite if 'block_sparse_moe' in stem else others}"
    own = tensors[tensor][int(expert)]
    return tensor, own if part is None else own.chunk(2)[part]


@pytest.mark.parametrize(
    ("family", "format", "bits", "changes"),
    [
        ("qwen3_5_moe", "gptq", 4, {}),
        ("qwen3_5_moe", "compressed-tensors", 8, {}),
        ("qwen3_5_moe_nested", "compressed-tensors", 4, dict(moe_intermediate_size=192)),
        ("lfm2_moe", "compressed-tensors", 4, {}),
        ("granite_moe", "compressed-tensors", 4, {}),
        ("granite_hybrid", "gptq", 4, {}),
    ],
)
def test_experts_in_one_tensor_get_tensors_of_their_own(family, format, bits, changes, tmp_path):
    base, out, kind = tmp_path / "base", tmp_path / "out", family.removesuffix("_nested")
    make_base(kind, base, **changes)
    if "granite" not in kind:
        join_experts(base)
    if kind != family:
        nest(base)
    report = quantise(base, out, "--format", format, "--bits", bits, "--dtype", "f32")
    plain, packed = load_file(base / "model.safetensors"), load_file(out / "model.safetensors")
    together = {name for name in plain if "experts." in name or "put_linear" in name and "block_sparse_moe" in name}
    assert len(together) == 4 and not together & packed.keys()
    read, filled, seen = {name: tensor.clone() for name, tensor in plain.items()}, {}, []
    for module in [matrix["tensor"].removesuffix(".weight") for matrix in report["matrices"]] + report["in_full_precision"]:
        tensor, own = place_in(read, f"{module}.weight")
        if module in report["in_full_precision"]:
            assert torch.equal(packed[f"{module}.weight"], own), module
        else:
            own.copy_(unpacked(packed, module, bits)[1].float())
        filled[tensor] = filled.get(tensor, 0) + own.numel()
        seen.append(module)
    assert len(set(seen)) == len(seen) and all(filled[name] == plain[name].numel() for name in together)
    assert bool(report["in_full_precision"]) == bool(changes) == any("down_proj" in module for module in report["in_full_precision"])
    if kind != family:
        assert torch.equal(packed[f"{IMAGES}.weight"], plain[f"{IMAGES}.weight"])
        assert IMAGES in json.loads((out / "config.json").read_text())["quantization_config"]["ignore"]
    known = [matrix for matrix in report["matrices"] if matrix["nearest_error"] > 0]
    assert sum(m["error"] for m in known) < 0.9 * sum(m["nearest_error"] for m in known)
    twin = tmp_path / "twin"
    shutil.copytree(base, twin)
    save_file(read, twin / "model.safetensors", metadata={"format": "pt"})
    ours, theirs = lancet_logits_of([out, twin], rows([2, 13]), "f32", tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_experts_that_no_program_reads_apart_are_refused(tmp_path):
    base, out = make_base("gpt_oss", tmp_path / "base"), tmp_path / "out"
    done = run_binary_raw("lancet", "quantise", base, "--format", "gptq", "--out", out, "--devices", "cpu")
    assert done.returncode == 2 and "gpt-oss" in done.stderr and "run.quantise_base" in done.stderr, done.stderr
    assert not out.exists()


MISFITS = {"phi3": [f"model.layers.{layer}.mlp.down_proj" for layer in range(2)], "nemotron_h": ["backbone.layers.1.mixer.down_proj"]}


@pytest.mark.parametrize("format", ["gptq", "compressed-tensors"])
@pytest.mark.parametrize(("family", "modules"), MISFITS.items(), ids=list(MISFITS))
def test_what_does_not_fit_stays_and_is_named(family, modules, format, tmp_path):
    base, out = make_base(family, tmp_path / "base", intermediate_size=192), tmp_path / "out"
    report = quantise(base, out, "--format", format, "--dtype", "f32")
    assert report["in_full_precision"] == modules
    modules = modules + [module.replace("backbone.", "model.") for module in modules]  # transformers' class has these
    settings = json.loads((out / "config.json").read_text())["quantization_config"]
    named = [key.removeprefix("-:") for key in settings["dynamic"]] if format == "gptq" else settings["ignore"]
    assert all(any(module.replace(".", mark) in name for name in named for mark in (".", r"\.")) for module in modules), named
    ours, theirs = lancet_logits_of([out, twin_of(base, out, tmp_path / "twin", 4)], rows([13]), "f32", tmp_path)
    assert torch.equal(ours[0], theirs[0])


def test_the_head_is_named_by_each_name_that_programs_have(tmp_path):
    base, out = make_base("gpt_neox", tmp_path / "base"), tmp_path / "out"
    quantise(base, out, "--format", "compressed-tensors")
    assert {"embed_out", "lm_head"} <= set(json.loads((out / "config.json").read_text())["quantization_config"]["ignore"])


def test_nothing_fits(tmp_path):
    base = make_base("qwen3", tmp_path / "base", hidden_size=64, intermediate_size=96, head_dim=24)
    done = run_binary_raw("lancet", "quantise", base, "--format", "gptq", "--out", tmp_path / "out", "--devices", "cpu")
    assert done.returncode == 2 and "in whole groups of 128" in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("family", ["qwen3", "phi3", "gpt_neox", "qwen3_5_moe", "lfm2_moe"])
@pytest.mark.parametrize("bits", [4, 8])
def test_transformers_reads_compressed_tensors(family, bits, tmp_path):
    pytest.importorskip("compressed_tensors")
    base, out = make_base(family, tmp_path / "base"), tmp_path / "out"
    if family in IN_ONE_TENSOR:
        join_experts(base)
    quantise(base, out, "--format", "compressed-tensors", "--bits", bits, "--dtype", "f32")
    some = rows([2, 13])
    ours = lancet_logits(out, some, "f32", tmp_path)
    theirs = transformers_logits(load_transformers(out, "f32"), some)
    errors = [nmse(a, b) for a, b in zip(ours, theirs, strict=True)]
    print(f"{family}, {bits} bits: NMSE of logits {max(errors):.1e}")
    assert max(errors) < 1e-4  # lancet rounds code times scale to the scales' bf16, as the package's own reader does; transformers in f32 does not
