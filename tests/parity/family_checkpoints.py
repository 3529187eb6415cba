"""Decides which configurations of each family are tried: random weights, the features that public models of it use.

A row says what a variant's config.json sets, and how to take each of its features away again: the logits must then differ
(`test_family_checkpoints.py`), or a parity test over the variant could not fail. Weights are scaled so that every part
shows: attention attends, no norm weight is its default, no bias is 0, soft caps and windows bind.
"""
import dataclasses
import json
import math
import shutil
from pathlib import Path

import torch
from checkpoints import SEED, TOKENIZER_FILES
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Gemma3Config, Gemma3ForConditionalGeneration, Qwen3_5Config, Qwen3_5ForConditionalGeneration
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

WINDOW = 8  # shorter than the tests' longest row
ORIGINAL_LENGTH = 32  # of longrope and yarn: the tests have shorter and longer rows
LAYERS = 4

# ---- sizes: by model type, in the names of its config.json ----

LLAMA_LIKE = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=LAYERS, num_attention_heads=4)
LLAMA_LIKE |= dict(num_key_value_heads=2, max_position_embeddings=256, vocab_size=4096)
LLAMA_LIKE |= dict(bos_token_id=1, eos_token_id=2, pad_token_id=None)
GEMMA = LLAMA_LIKE | dict(head_dim=24)
GPT = dict(n_embd=64, n_layer=LAYERS, n_head=4, n_positions=128, vocab_size=4096, bos_token_id=2, eos_token_id=2)
NEOX = dict(hidden_size=64, intermediate_size=160, num_hidden_layers=LAYERS, num_attention_heads=4, vocab_size=4096)
NEOX |= dict(max_position_embeddings=256, bos_token_id=2, eos_token_id=2)
MOE = LLAMA_LIKE | dict(head_dim=24, moe_intermediate_size=40, num_experts=6, num_experts_per_tok=2, norm_topk_prob=True)

SIZES = {
    "llama": LLAMA_LIKE | dict(tie_word_embeddings=False),
    "mistral": LLAMA_LIKE | dict(sliding_window=None, tie_word_embeddings=False),
    "qwen2": LLAMA_LIKE | dict(tie_word_embeddings=False),
    "qwen3": LLAMA_LIKE | dict(head_dim=24, tie_word_embeddings=False),
    "phi3": LLAMA_LIKE | dict(tie_word_embeddings=False),
    "gemma": GEMMA,
    "gemma2": GEMMA | dict(query_pre_attn_scalar=24, sliding_window=WINDOW),
    "gemma3_text": GEMMA | dict(query_pre_attn_scalar=24, sliding_window=WINDOW),
    "olmo2": LLAMA_LIKE | dict(tie_word_embeddings=False),
    "gpt2": GPT,
    "gptj": GPT | dict(rotary_dim=8),
    "gpt_neox": NEOX,
    "stablelm": LLAMA_LIKE | dict(tie_word_embeddings=False),
    "qwen3_moe": MOE | dict(tie_word_embeddings=False),
    "mixtral": LLAMA_LIKE | dict(num_local_experts=5, num_experts_per_tok=2, tie_word_embeddings=False),
}

# ---- rotary embeddings ----


def rope(base=10000.0, **more):
    return dict(rope_parameters=dict(rope_type="default", rope_theta=base) | more)


def longrope(pairs, short=None, long=None, **more):
    """Phi-3's, which has the original length beside the rotary embedding; a factor for each pair of dimensions that rotates."""
    factors = dict(short_factor=short or short_factors(pairs), long_factor=long or long_factors(pairs))
    settings = rope(rope_type="longrope", original_max_position_embeddings=ORIGINAL_LENGTH, **factors, **more)
    return settings | dict(original_max_position_embeddings=ORIGINAL_LENGTH)


def yarn(base=10000.0, **more):
    """The slower half of the frequencies is divided, partly or whole: turns are counted within the short original length."""
    return rope(base, rope_type="yarn", original_max_position_embeddings=ORIGINAL_LENGTH, **(dict(factor=4.0) | more))


def short_factors(pairs):
    return [1 + 0.1 * i for i in range(pairs)]


def long_factors(pairs):
    return [1.5 + 0.9 * i for i in range(pairs)]


def gemma3_rope(local=10000.0, **of_global):
    """Two bases; the global layers' may be scaled."""
    full = dict(rope_type="default", rope_theta=1000000.0) | of_global
    return dict(rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=local), full_attention=full))


# ---- variants ----


@dataclasses.dataclass(frozen=True)
class Variant:
    """`without`: settings of the same weights that lack one feature each. `defaults`: parts of names of parameters that
    count only if the feature is read: they are set to what a reader without it takes. `form`: how the files are written."""

    family: str
    config: dict = dataclasses.field(default_factory=dict)
    without: tuple = ()
    defaults: tuple = ()
    form: str = ""


SLIDING, FULL = "sliding_attention", "full_attention"
CAPS = dict(attn_logit_softcapping=2.0, final_logit_softcapping=5.0)  # small, so that they bind on random weights
NO_CAPS = (dict(attn_logit_softcapping=None), dict(final_logit_softcapping=None))
NO_WINDOW = dict(layer_types=[FULL] * LAYERS)
QWEN_WINDOW = dict(use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2)
QWEN_WITHOUT = (NO_WINDOW, dict(layer_types=[SLIDING] * LAYERS))
QK_NORM = ("q_norm.weight", "k_norm.weight")
GEMMA3_TYPES = dict(layer_types=[SLIDING, SLIDING, FULL, SLIDING])
GEMMA3_LINEAR = gemma3_rope(rope_type="linear", factor=8.0)
GEMMA3_YARN = gemma3_rope(rope_type="yarn", factor=8.0, original_max_position_embeddings=ORIGINAL_LENGTH)
GEMMA3_SPARSE = dict(num_hidden_layers=7, hidden_size=32, num_attention_heads=8, num_key_value_heads=4, head_dim=256)
GEMMA3_SPARSE |= dict(query_pre_attn_scalar=256)
GEMMA3_WITHOUT = (gemma3_rope(local=1000000.0), NO_WINDOW | gemma3_rope())
LONGROPE, PHI_4_MINI = longrope(8), longrope(6, partial_rotary_factor=0.75)
ONLY_SHORT, ONLY_LONG = longrope(8, long=short_factors(8)), longrope(8, short=long_factors(8))
DEEPSEEK = dict(factor=40, beta_fast=4, beta_slow=1, mscale=1.0)  # another attention_factor than with mscale_all_dim alone
QWEN_YARN, QWEN_WITHOUT_YARN = yarn(1000000.0, beta_fast=4.0), (rope(1000000.0), yarn(1000000.0, beta_fast=4.0, attention_factor=1.0))
DYNAMIC = rope(rope_type="dynamic", factor=4.0)
NEOX_QUARTER, NEOX_ALL = rope(partial_rotary_factor=0.25), rope(partial_rotary_factor=1.0)
GPT_NORMS = ("ln_1.bias", "ln_2.bias", "ln_f.bias")
GPTJ_BIASES = ("ln_1.bias", "mlp.fc_in.bias", "mlp.fc_out.bias", "lm_head.bias")
MOE_STEP = dict(decoder_sparse_step=2)

VARIANTS = {
    "llama_yarn_deepseek": Variant("llama", yarn(mscale_all_dim=0.5, **DEEPSEEK), (rope(), yarn(**DEEPSEEK))),
    "mistral": Variant("mistral", rope(1000000.0), without=(rope(),)),
    "mistral_window": Variant("mistral", dict(sliding_window=WINDOW), without=(dict(sliding_window=None),)),
    "mistral_head_dim": Variant("mistral", dict(head_dim=24)),
    "mistral_old_keys": Variant("mistral", dict(sliding_window=WINDOW, **rope(1000.0)), (rope(),), form="old_keys"),
    "qwen2": Variant("qwen2", rope(1000000.0), without=(rope(),), defaults=("q_proj.bias", "k_proj.bias", "v_proj.bias")),
    "qwen2_tied": Variant("qwen2", dict(tie_word_embeddings=True)),
    "qwen2_window": Variant("qwen2", QWEN_WINDOW, QWEN_WITHOUT),
    "qwen2_window_unused": Variant("qwen2", QWEN_WINDOW | dict(use_sliding_window=False), form="old_keys"),
    "qwen2_old_keys": Variant("qwen2", QWEN_WINDOW, QWEN_WITHOUT, form="old_keys"),
    "qwen2_yarn": Variant("qwen2", QWEN_YARN, QWEN_WITHOUT_YARN),
    "qwen2_yarn_old_keys": Variant("qwen2", QWEN_YARN, QWEN_WITHOUT_YARN[:1], form="old_keys"),
    "qwen2_dynamic": Variant("qwen2", DYNAMIC | dict(max_position_embeddings=60)),
    "qwen3": Variant("qwen3", defaults=QK_NORM),
    "qwen3_yarn": Variant("qwen3", yarn(1000000.0, beta_fast=4.0, truncate=False), QWEN_WITHOUT_YARN, QK_NORM),
    "qwen3_yarn_old_keys": Variant("qwen3", QWEN_YARN, QWEN_WITHOUT_YARN[:1], form="old_keys"),
    "qwen3_tied": Variant("qwen3", dict(tie_word_embeddings=True)),
    "qwen3_odd_width": Variant("qwen3", dict(hidden_size=66, head_dim=14)),  # not a multiple of the 4 heads, nor of one's size
    "qwen3_bias": Variant("qwen3", dict(attention_bias=True), defaults=("q_proj.bias", "o_proj.bias")),
    "qwen3_window": Variant("qwen3", QWEN_WINDOW, QWEN_WITHOUT),
    "qwen3_old_keys": Variant("qwen3", rope(1000.0), (rope(),), form="old_keys"),
    "phi3": Variant("phi3", rope()),
    "phi3_window": Variant("phi3", dict(sliding_window=WINDOW), without=(dict(sliding_window=None),)),
    "phi3_longrope": Variant("phi3", LONGROPE, (rope(), ONLY_SHORT, ONLY_LONG)),
    "phi3_longrope_old_keys": Variant("phi3", LONGROPE, (rope(),), form="old_keys"),
    "phi4": Variant("phi3", dict(num_key_value_heads=1, **rope(250000.0)), (rope(),)),
    "phi4_mini": Variant("phi3", dict(tie_word_embeddings=True, **PHI_4_MINI), (rope(partial_rotary_factor=0.75),)),
    "phi4_mini_old_keys": Variant("phi3", PHI_4_MINI, (rope(partial_rotary_factor=0.75),), form="old_keys"),
    "gemma": Variant("gemma", defaults=("input_layernorm.weight", "model.norm.weight")),
    "gemma_multi_query": Variant("gemma", dict(num_key_value_heads=1)),
    "gemma_old_keys": Variant("gemma", rope(1000.0), (rope(),), form="old_keys"),
    "gemma2": Variant("gemma2", CAPS, NO_CAPS + (NO_WINDOW,), ("post_attention_layernorm", "post_feedforward_layernorm")),
    "gemma2_caps_of_the_published": Variant("gemma2", {}),
    "gemma2_no_caps": Variant("gemma2", dict(attn_logit_softcapping=None, final_logit_softcapping=None)),
    "gemma2_scalar": Variant("gemma2", dict(query_pre_attn_scalar=60), (dict(query_pre_attn_scalar=24),)),
    "gemma2_old_keys": Variant("gemma2", CAPS, NO_CAPS, form="old_keys"),
    "gemma3": Variant("gemma3_text", GEMMA3_TYPES | gemma3_rope(), GEMMA3_WITHOUT, QK_NORM),
    "gemma3_linear": Variant("gemma3_text", GEMMA3_TYPES | GEMMA3_LINEAR, (gemma3_rope(),)),
    "gemma3_yarn": Variant("gemma3_text", GEMMA3_TYPES | GEMMA3_YARN, (gemma3_rope(),)),
    "gemma3_yarn_old_keys": Variant("gemma3_text", dict(num_hidden_layers=7, **GEMMA3_YARN), (gemma3_rope(),), form="old_keys"),
    "gemma3_scalar": Variant("gemma3_text", dict(query_pre_attn_scalar=60, **GEMMA3_TYPES), (dict(query_pre_attn_scalar=24),)),
    "gemma3_old_keys": Variant("gemma3_text", dict(num_hidden_layers=7, **GEMMA3_LINEAR), (gemma3_rope(),), form="old_keys"),
    "gemma3_nested": Variant("gemma3_text", GEMMA3_TYPES | GEMMA3_LINEAR, form="nested"),
    "gemma3_nested_old_keys": Variant("gemma3_text", dict(num_hidden_layers=7, **GEMMA3_LINEAR), form="nested_old_keys"),
    "gemma3_nested_sparse": Variant("gemma3_text", GEMMA3_SPARSE | GEMMA3_LINEAR, form="nested_sparse"),
    "olmo2": Variant("olmo2", rope(500000.0), (rope(),), QK_NORM + ("post_attention_layernorm", "post_feedforward_layernorm")),
    "olmo2_all_heads": Variant("olmo2", dict(num_key_value_heads=4)),
    "olmo2_old_keys": Variant("olmo2", rope(1000.0), (rope(),), form="old_keys"),
    "gpt2": Variant("gpt2", defaults=GPT_NORMS + ("attn.c_attn.bias", "attn.c_proj.bias", "mlp.c_fc.bias", "mlp.c_proj.bias", "wpe")),
    "gpt2_no_prefix": Variant("gpt2", form="no_prefix"),
    "gpt2_as_published": Variant("gpt2", form="no_prefix_buffers_old_keys"),
    "gpt2_inner": Variant("gpt2", dict(n_inner=96)),
    "gpt2_untied": Variant("gpt2", dict(tie_word_embeddings=False)),
    "gptj": Variant("gptj", {}, (dict(rotary_dim=16), dict(rotary_dim=4)), GPTJ_BIASES),
    "gptj_padded": Variant("gptj", dict(vocab_size=4128)),
    "gptj_whole_head": Variant("gptj", dict(rotary_dim=16), (dict(rotary_dim=8),)),
    "gptj_inner": Variant("gptj", dict(n_inner=96)),
    "gptj_as_published": Variant("gptj", form="buffers_old_keys"),
    "neox": Variant("gpt_neox", NEOX_QUARTER, (NEOX_ALL, dict(use_parallel_residual=False)), ("query_key_value.bias", "dense.bias")),
    "neox_sequential": Variant("gpt_neox", dict(use_parallel_residual=False, **NEOX_QUARTER), (dict(use_parallel_residual=True),)),
    "neox_whole_head": Variant("gpt_neox", NEOX_ALL, (NEOX_QUARTER,)),
    "neox_no_bias": Variant("gpt_neox", dict(attention_bias=False, **NEOX_QUARTER)),
    "neox_gelu_new": Variant("gpt_neox", dict(hidden_act="gelu_new", **NEOX_QUARTER), (dict(hidden_act="relu"),)),
    "neox_gelu_fast": Variant("gpt_neox", dict(hidden_act="gelu_fast", **NEOX_QUARTER), (dict(hidden_act="relu"),)),
    "neox_old_keys": Variant("gpt_neox", rope(1000.0, partial_rotary_factor=0.5), (NEOX_QUARTER,), form="buffers_old_keys"),
    "stablelm": Variant("stablelm", NEOX_QUARTER, (NEOX_ALL,), ("input_layernorm.bias", "model.norm.bias")),
    "stablelm_bias": Variant("stablelm", dict(use_qkv_bias=True, **NEOX_QUARTER), defaults=("q_proj.bias",)),
    "stablelm_old_keys": Variant("stablelm", rope(1000.0, partial_rotary_factor=0.5), (NEOX_QUARTER,), form="old_keys"),
    "qwen3_moe": Variant("qwen3_moe", {}, (dict(norm_topk_prob=False), dict(num_experts_per_tok=1)), QK_NORM),
    "qwen3_moe_plain_weights": Variant("qwen3_moe", dict(norm_topk_prob=False), (dict(norm_topk_prob=True),)),
    "qwen3_moe_some_dense": Variant("qwen3_moe", dict(mlp_only_layers=[1])),
    "qwen3_moe_step": Variant("qwen3_moe", MOE_STEP),
    "mixtral": Variant("mixtral", {}, (dict(num_experts_per_tok=1),)),
    "mixtral_window": Variant("mixtral", dict(sliding_window=WINDOW), (dict(sliding_window=None),)),
    "mixtral_old_keys": Variant("mixtral", rope(1000.0), (rope(),), form="old_keys"),
    "qwen3_moe_old_keys": Variant("qwen3_moe", dict(mlp_only_layers=[0], **rope(1000.0)), (rope(),), form="old_keys"),
}

# ---- dense families: a file each, which tests/support/family_models.cpp reads too ----

DENSE_FILES = sorted((Path(__file__).parents[1] / "fixtures" / "families").glob("*.json"))


def read_dense(path):
    """A file has the config.json of a small model; `without` and `defaults` are a Variant's."""
    told = json.loads(path.read_text())
    config = {key: value for key, value in told["config"].items() if key not in ("architectures", "model_type")}
    return Variant(told["config"]["model_type"], config, tuple(told.get("without", ())), tuple(told.get("defaults", ())))


DENSE = {path.stem: read_dense(path) for path in DENSE_FILES}
VARIANTS |= DENSE | {"qwen3_5_nested": dataclasses.replace(DENSE["qwen3_5"], form="nested")}
# Token by token transformers forgets the limits, so this has no text to compare.
LIMITS = dict(config=DENSE["bamba"].config | dict(time_step_limit=[0.5, 2.0]), without=(dict(time_step_limit=[0.0, 100.0]),))
VARIANTS |= {"bamba_limits": dataclasses.replace(DENSE["bamba"], **LIMITS)}
NEMOTRON = DENSE["nemotron_h"].config | dict(mlp_bias=True, layers_block_type=["linear_attention", "mlp", "full_attention", "mlp"])
VARIANTS |= {"nemotron_h_bias": Variant("nemotron_h", NEMOTRON, defaults=("up_proj.bias", "down_proj.bias"))}
VARIANTS |= {"qwen2_moe_joined": dataclasses.replace(DENSE["qwen2_moe"], form="joined")}
SIZES |= {variant.family: {} for variant in DENSE.values()}


def config_of(variant, overrides=None):
    """The configuration; `overrides` take a feature away."""
    kind = CONFIG_MAPPING[variant.family]
    return kind(**(SIZES[variant.family] | variant.config | (overrides or {})))


def make_net(variant, overrides=None):
    """A random model in float32. Eager attention: soft caps exist nowhere else."""
    net = AutoModelForCausalLM.from_config(config_of(variant, overrides), attn_implementation="eager").eval()
    randomise(net, torch.Generator().manual_seed(SEED))
    return net


@torch.no_grad()
def randomise(net, generator):
    """Norms that multiply by 1 + w have weights about 0, the others about 1; embeddings that are scaled are small."""
    kind = net.config.model_type
    is_gemma, is_gpt2 = kind.startswith("gemma") or kind == "vaultgemma", kind == "gpt2"
    biases_of_routers = [(name, buffer) for name, buffer in net.named_buffers() if name.endswith(("e_score_correction_bias", "expert_bias"))]
    for name, parameter in [*net.named_parameters(), *biases_of_routers]:
        noise = torch.randn(parameter.shape, generator=generator)
        if name.endswith("bias"):
            parameter.copy_(0.3 * noise)
        elif parameter.dim() == 1:
            parameter.copy_(0.2 * noise if is_gemma else 1 + 0.2 * noise)
        elif any(part in name for part in ("embed_tokens", "wte", "wpe", "embed_in", "embed_positions", "word_embeddings")):
            parameter.copy_(noise / math.sqrt(net.config.hidden_size) if is_gemma else noise)
        else:
            is_conv1d = is_gpt2 and "lm_head" not in name  # stored [in, out]
            parameter.copy_(1.5 * noise / math.sqrt(parameter.shape[0 if is_conv1d else -1]))


@torch.no_grad()
def set_to_default(net, part):
    """Parameters whose name has that part are what a reader that does not know them would take: bias 0, norm 1."""
    is_gemma = net.config.model_type.startswith(("gemma", "vaultgemma", "nemotron"))
    found = [(name, parameter) for name, parameter in net.named_parameters() if part in name]
    assert found, f"no parameter is named like {part}"
    for name, parameter in found:
        is_zero = name.endswith("bias") or parameter.dim() > 1 or is_gemma
        parameter.fill_(0.0 if is_zero else 1.0)


# ---- files as other versions wrote them ----


def flat_rope(config):
    """The rotary embedding in the keys of transformers 4."""
    rope_parameters = config.pop("rope_parameters", None)
    if rope_parameters is None:
        return
    if SLIDING in rope_parameters:  # Gemma 3
        config["rope_local_base_freq"] = rope_parameters[SLIDING]["rope_theta"]
        rope_parameters = rope_parameters[FULL]
    base, share = rope_parameters.pop("rope_theta"), rope_parameters.pop("partial_rotary_factor", None)
    is_neox = config["model_type"] == "gpt_neox"
    config["rotary_emb_base" if is_neox else "rope_theta"] = base
    if share is not None:
        config["rotary_pct" if is_neox else "partial_rotary_factor"] = share
    kind = rope_parameters.pop("rope_type")
    if kind == "longrope":  # Phi-3 has the length beside the scaling
        config["original_max_position_embeddings"] = rope_parameters.pop("original_max_position_embeddings")
        config["rope_scaling"] = dict(type=kind, **rope_parameters)
    elif kind != "default":
        key = "type" if config["model_type"] == "qwen2" else "rope_type"  # as Qwen2.5's and Qwen3's pages have it
        config["rope_scaling"] = {key: kind} | rope_parameters


def to_old_keys(config):
    """What config.json had in transformers 4, which left out a head's usual size and the usual tying."""
    flat_rope(config)
    if config["model_type"] in ("gemma", "gemma2", "gemma3_text", "gpt2"):
        config.pop("tie_word_embeddings")
    if config.get("head_dim") == config.get("hidden_size", 0) // config.get("num_attention_heads", 1):
        config.pop("head_dim")
    types = config.pop("layer_types", None)
    if config["model_type"] == "gemma3_text":
        config["sliding_window_pattern"] = types.index(FULL) + 1
    if "dtype" in config:
        config["torch_dtype"] = config.pop("dtype")


def drop_defaults(config):
    """Gemma 3's multi-modal files say nothing that the class has by default, the number of heads included."""
    for key, value in CONFIG_MAPPING[config["model_type"]]().to_dict().items():
        if key != "model_type" and config.get(key) == value:
            config.pop(key, None)
    for key in ("rope_theta", "rope_local_base_freq", "sliding_window_pattern"):
        config.pop(key)


def rewrite_config(folder, variant):
    """`use_sliding_window`: false with a window beside it, as in the published files, which the class drops."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    text = config.get("text_config", config)
    to_old_keys(text)
    if variant.form == "nested_sparse":
        drop_defaults(text)
    if "sliding_window" in variant.config:
        config["sliding_window"] = variant.config["sliding_window"]
    path.write_text(json.dumps(config, indent=2))


def save_without_prefix(net, folder):
    """GPT-2 as it was published: names begin with `h.`, and no head is stored."""
    net.transformer.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | dict(architectures=["GPT2LMHeadModel"]), indent=2))


def add_buffers(folder, layers):
    """Masks and frequencies that older versions stored beside the weights, and that no reader needs."""
    weights = load_file(folder / "model.safetensors")
    one = "attn." if any(".attn." in name or name.startswith("h.0.attn.") for name in weights) else "attention."
    stems = sorted({name[: name.index(one)] + one for name in weights if one in name})
    assert len(stems) == layers
    for stem in stems:
        weights[stem + "bias"] = torch.ones(1, 1, 128, 128, dtype=torch.bool).tril()
        weights[stem + "masked_bias"] = torch.tensor(-1e9)
        if one == "attention.":
            weights[stem + "rotary_emb.inv_freq"] = torch.ones(2)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def save_nested(net, folder, dtype):
    """As the multi-modal files have it: a vision part that nobody asked for, the text model beside it."""
    if net.config.model_type == "qwen3_5_text":
        vision = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, patch_size=4, out_hidden_size=32, num_position_embeddings=4)
        whole = Qwen3_5ForConditionalGeneration(Qwen3_5Config(text_config=net.config.to_dict(), vision_config=vision)).to(dtype)
        whole.lm_head.load_state_dict(net.lm_head.state_dict())
        return save_with_text(whole, net, folder)
    vision = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14)
    config = Gemma3Config(text_config=net.config.to_dict(), vision_config=vision, mm_tokens_per_image=4)
    save_with_text(Gemma3ForConditionalGeneration(config).to(dtype), net, folder)


def save_with_text(whole, net, folder):
    missing = whole.model.language_model.load_state_dict(net.model.state_dict())
    assert not missing.missing_keys and not missing.unexpected_keys
    whole.tie_weights()
    whole.save_pretrained(folder)


def join_experts(folder):
    """All experts of a layer in one tensor, as transformers 5 has them in memory and newer models in their files."""
    weights, kept, stacks, lfm2 = load_file(folder / "model.safetensors"), {}, {}, dict(w1="gate_proj", w3="up_proj", w2="down_proj")
    for name, tensor in weights.items():
        before, experts, after = name.partition(".experts.")
        if experts:
            expert, kind = after.split(".")[:2]
            stacks.setdefault(before + experts, {}).setdefault(lfm2.get(kind, kind), {})[int(expert)] = tensor
        else:
            kept[name] = tensor
    for stem, of_kind in stacks.items():
        gate, up, down = (torch.stack([of_kind[kind][e] for e in range(len(of_kind[kind]))]) for kind in ("gate_proj", "up_proj", "down_proj"))
        kept |= {stem + "gate_up_proj": torch.cat([gate, up], 1), stem + "down_proj": down}
    assert stacks
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def save(net, variant, folder, dtype):
    if variant.form.startswith("no_prefix"):
        save_without_prefix(net, folder)
    elif variant.form.startswith("nested"):
        save_nested(net, folder, dtype)
    else:
        net.save_pretrained(folder)
    if variant.form == "joined":
        join_experts(folder)
    if "buffers" in variant.form:
        add_buffers(folder, net.config.num_hidden_layers)
    if variant.form.endswith(("old_keys", "sparse")):
        rewrite_config(folder, variant)


def make_checkpoint(name, folder, tokenizer_folder, dtype=torch.float32):
    """Saves the named variant with the tokenizer's files beside it; returns the folder."""
    variant = VARIANTS[name]
    save(make_net(variant).to(dtype), variant, folder, dtype)
    for file in TOKENIZER_FILES:
        shutil.copyfile(tokenizer_folder / file, folder / file)
    return folder


def load(folder, dtype=torch.float32):
    """The text model of a checkpoint, as transformers reads it, with eager attention."""
    options = dict(dtype=dtype, attn_implementation="eager", experts_implementation="eager")
    return AutoModelForCausalLM.from_pretrained(folder, **options).eval()
