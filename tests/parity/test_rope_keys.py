"""Every way to write a rotary embedding into config.json, for every family: lancet reads it as transformers does, or says why not.

One random model of each family; each case is its config.json with other keys. What transformers refuses, lancet refuses.
"""
import json

import pytest
import torch
from engine import lancet_logits_of_all, nmse, transformers_logits
from family_checkpoints import Variant, make_net
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoModelForCausalLM

FAMILIES = ["llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "phi3", "gemma", "gemma2", "gemma3_text", "olmo2", "gpt_neox", "stablelm"]
SMALL = dict(num_hidden_layers=2, hidden_size=32)
GROUPED = dict(head_dim=8, num_key_value_heads=2)
ROWS = [[7, 300, 12, 5], [(31 * i) % 2000 + 3 for i in range(24)]]
ORIGINAL = 16  # between the rows' lengths
ROPE_KEYS = ["rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor", "rotary_pct", "rotary_emb_base"]
ROPE_KEYS += ["rope_local_base_freq", "original_max_position_embeddings"]
LINEAR, HALF = dict(factor=4.0), dict(partial_rotary_factor=0.5)
LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
FIRST = dict(original_max_position_embeddings=ORIGINAL)


def longrope(pairs):
    return dict(short_factor=[1 + 0.1 * i for i in range(pairs)], long_factor=[1.5 + 0.9 * i for i in range(pairs)])


def parameters(kind="default", base=1000.0, **more):
    return dict(rope_type=kind, **({} if base is None else dict(rope_theta=base)), **more)


CASES = {
    "nothing": {},
    "theta": dict(rope_theta=1000.0),
    "theta and share": dict(rope_theta=1000.0, **HALF),
    "theta beside parameters": dict(rope_theta=1000.0, rope_parameters=parameters(base=None)),
    "other theta beside parameters": dict(rope_theta=50.0, rope_parameters=parameters()),
    "parameters": dict(rope_parameters=parameters()),
    "parameters with share": dict(rope_parameters=parameters(**HALF)),
    "share beside parameters": dict(rope_parameters=parameters(), **HALF),
    "keys of other kinds": dict(rope_parameters=parameters(attention_factor=3.0, beta_fast=32.0, **LINEAR, **FIRST)),
    "linear": dict(rope_parameters=parameters("linear", **LINEAR)),
    "linear with share": dict(rope_parameters=parameters("linear", **LINEAR, **HALF)),
    "share beside linear": dict(rope_parameters=parameters("linear", **LINEAR), **HALF),
    "scaling": dict(rope_theta=1000.0, rope_scaling=dict(type="linear", **LINEAR)),
    "scaling with theta": dict(rope_theta=50.0, rope_scaling=parameters("linear", **LINEAR)),
    "scaling beside parameters": dict(rope_scaling=parameters("linear", **LINEAR), rope_parameters=parameters(base=50.0)),
    "empty scaling": dict(rope_scaling={}, rope_parameters=parameters()),
    "llama3": dict(rope_parameters=parameters("llama3", **LLAMA3, **FIRST)),
    "llama3 without length": dict(rope_parameters=parameters("llama3", **LLAMA3)),
    "longrope": dict(rope_parameters=parameters("longrope", **longrope(4), **FIRST)),
    "longrope with share": dict(rope_parameters=parameters("longrope", **longrope(2), **FIRST, **HALF)),
    "longrope with length beside": dict(rope_parameters=parameters("longrope", **longrope(4)), **FIRST),
    "longrope with both lengths": dict(rope_parameters=parameters("longrope", **longrope(4), **FIRST), original_max_position_embeddings=64),
    "longrope with factors": dict(rope_parameters=parameters("longrope", factor=2.0, attention_factor=1.3, **longrope(4), **FIRST)),
    "yarn": dict(rope_parameters=parameters("yarn", **LINEAR, **FIRST)),
    "dynamic": dict(rope_parameters=parameters("dynamic", **LINEAR)),
}
OF_NEOX = {
    "pct": dict(rotary_pct=0.5),
    "base": dict(rotary_emb_base=1000),
    "base and theta": dict(rotary_emb_base=1000, rope_theta=50.0),
    "base beside parameters": dict(rotary_emb_base=1000, rotary_pct=0.5, rope_parameters=dict(rope_type="default")),
}
OF_GEMMA3 = {"local base": dict(rope_theta=1000.0, rope_local_base_freq=50.0)}
BOTH = {name: changes for name, changes in CASES.items() if "rope_parameters" in changes}


def for_layer_types(changes):
    """Gemma 3's form: an object for each type of layer."""
    both = dict(full_attention=changes["rope_parameters"], sliding_attention=parameters(base=None))
    return changes | dict(rope_parameters=both)


def cases_of(family):
    if family == "gemma3_text":
        return CASES | OF_GEMMA3 | {f"{name}, by layer type": for_layer_types(changes) for name, changes in BOTH.items()}
    return CASES | (OF_NEOX if family == "gpt_neox" else {})


def write_case(folder, source, changes):
    folder.mkdir()
    (folder / "model.safetensors").symlink_to(source / "model.safetensors")
    config = json.loads((source / "config.json").read_text())
    kept = {key: value for key, value in config.items() if key not in ROPE_KEYS}
    (folder / "config.json").write_text(json.dumps(kept | changes))


def theirs(folder, weights):
    """Logits; None: transformers refuses the configuration, or fails with it."""
    try:
        net = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), attn_implementation="eager").eval()
        net.load_state_dict(weights)
        return transformers_logits(net, ROWS)
    except (ArithmeticError, AttributeError, KeyError, RuntimeError, StrictDataclassError, TypeError, ValueError):
        return None


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """By family and case: lancet's logits or words, and transformers' logits or None."""
    root, expected = tmp_path_factory.mktemp("rope"), {}
    for family in FAMILIES:
        net = make_net(Variant(family), SMALL | ({} if family == "gpt_neox" else GROUPED))
        net.save_pretrained(root / family)
        for number, (name, changes) in enumerate(cases_of(family).items()):
            folder = root / f"{family}-{number}"
            write_case(folder, root / family, changes)
            expected[family, name] = folder, theirs(folder, net.state_dict())
    found = lancet_logits_of_all([folder for folder, _ in expected.values()], ROWS, "f32", root)
    return {case: (ours, logits) for (case, (_, logits)), ours in zip(expected.items(), found, strict=True)}


@torch.no_grad()
def test_a_rotary_embedding_is_what_transformers_makes_of_the_keys(outcomes):
    wrong, read = [], 0
    for case, (ours, logits) in outcomes.items():
        if isinstance(ours, str):
            continue  # refused with words
        if logits is None:
            wrong.append((case, "transformers refuses it"))
        else:
            read += 1
            worst = max(nmse(a, b) for a, b in zip(ours, logits, strict=True))
            wrong += [(case, f"NMSE {worst:.1e}")] if worst > 1e-9 else []
    assert not wrong
    assert read > 150
