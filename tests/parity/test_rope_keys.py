"""Every way to write a rotary embedding into config.json, for every family: lancet reads it as transformers does, or says why not.

One random model of each family; each case is its config.json with other keys. What transformers refuses, lancet refuses; what lancet
refuses beyond that is listed here.
"""
import json
import re

import pytest
import torch
from engine import lancet_logits_of_all, nmse, transformers_logits
from family_checkpoints import Variant, make_net
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.initialization import no_init_weights

FAMILIES = ["llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "phi3", "gemma", "gemma2", "gemma3_text", "olmo2", "gpt_neox", "stablelm", "gptj"]
SMALL = dict(num_hidden_layers=2, hidden_size=32)
GROUPED = dict(head_dim=8, num_key_value_heads=2)
BOTH_TYPES = dict(layer_types=["sliding_attention", "full_attention"])
SIZES = {"gpt_neox": SMALL, "gemma3_text": SMALL | GROUPED | BOTH_TYPES, "gptj": dict(n_layer=2, n_embd=144, n_head=2, n_inner=96)}  # GPT-J's heads have more numbers than usually turn
ROWS = [[7, 300, 12, 5], [(31 * i) % 2000 + 3 for i in range(24)]]
ORIGINAL = 16  # between the rows' lengths
ROPE_KEYS = ["rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor", "rotary_pct", "rotary_emb_base"]
ROPE_KEYS += ["rope_local_base_freq", "original_max_position_embeddings", "rotary_dim"]
LINEAR, HALF = dict(factor=4.0), dict(partial_rotary_factor=0.5)
LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
TURNS = dict(beta_fast=2.0, beta_slow=0.1)  # of which the passage ends within a head of 8
DEEPSEEK = dict(type="yarn", factor=40, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=0.707)
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
    "scaling by its new name": dict(rope_theta=1000.0, rope_scaling=dict(rope_type="linear", **LINEAR)),
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
    "yarn with share": dict(rope_parameters=parameters("yarn", **LINEAR, **FIRST, **HALF)),
    "yarn without length": dict(rope_parameters=parameters("yarn", **LINEAR)),
    "yarn without factor": dict(rope_parameters=parameters("yarn", **FIRST)),
    "yarn with null for the factor": dict(rope_parameters=parameters("yarn", factor=None, **FIRST)),
    "yarn by 1": dict(rope_parameters=parameters("yarn", factor=1, **FIRST)),
    "yarn between pairs": dict(rope_parameters=parameters("yarn", truncate=False, **TURNS, **LINEAR, **FIRST)),
    "yarn between pairs by null": dict(rope_parameters=parameters("yarn", truncate=None, **TURNS, **LINEAR, **FIRST)),
    "yarn with a passage": dict(rope_parameters=parameters("yarn", truncate=True, **TURNS, **LINEAR, **FIRST)),
    "yarn with no passage": dict(rope_parameters=parameters("yarn", beta_fast=1, **LINEAR, **FIRST)),
    "yarn of fast pairs": dict(rope_parameters=parameters("yarn", original_max_position_embeddings=4096, **LINEAR)),
    "yarn of fast pairs alone": dict(rope_parameters=parameters("yarn", original_max_position_embeddings=10**9, **LINEAR)),
    "yarn with a factor of scores": dict(rope_parameters=parameters("yarn", attention_factor=1.7, mscale=0.5, mscale_all_dim=2.0, **LINEAR, **FIRST)),
    "yarn with shares": dict(rope_parameters=parameters("yarn", mscale=0.707, mscale_all_dim=2.0, **LINEAR, **FIRST)),
    "yarn with one share": dict(rope_parameters=parameters("yarn", mscale=0.707, mscale_all_dim=0, **LINEAR, **FIRST)),
    "yarn of a finetuned model": dict(rope_parameters=parameters("yarn", finetuned=True, **LINEAR, **FIRST)),
    "yarn with another key": dict(rope_parameters=parameters("yarn", alpha=8.0, **LINEAR, **FIRST)),
    "yarn by a half": dict(rope_parameters=parameters("yarn", factor=0.5, **FIRST)),
    "yarn with turns the other way round": dict(rope_parameters=parameters("yarn", beta_fast=1, beta_slow=4, **LINEAR, **FIRST)),
    "yarn with turns of 0": dict(rope_parameters=parameters("yarn", beta_slow=0, **LINEAR, **FIRST)),
    "yarn with a share below 0": dict(rope_parameters=parameters("yarn", mscale=-0.5, mscale_all_dim=1.0, **LINEAR, **FIRST)),
    "yarn of short factors": dict(rope_parameters=parameters("yarn", **longrope(4), **LINEAR, **FIRST)),
    "scaling by yarn as Qwen2.5 has it": dict(rope_theta=1000.0, rope_scaling=dict(type="yarn", **LINEAR, **FIRST)),
    "scaling by yarn as Qwen3 has it": dict(rope_theta=1000.0, rope_scaling=dict(rope_type="yarn", **LINEAR, **FIRST)),
    "scaling by yarn as DeepSeek has it": dict(rope_scaling=DEEPSEEK | FIRST),
    "scaling by yarn between pairs": dict(rope_scaling=dict(rope_type="yarn", truncate=False, **TURNS, **LINEAR, **FIRST)),
    "dynamic": dict(rope_parameters=parameters("dynamic", **LINEAR)),
    "dynamic with share": dict(rope_parameters=parameters("dynamic", **LINEAR, **HALF)),
    "dynamic of the same length": dict(rope_parameters=parameters("dynamic", original_max_position_embeddings=256, **LINEAR)),
    "dynamic of another length": dict(rope_parameters=parameters("dynamic", **LINEAR, **FIRST)),
    "dynamic without factor": dict(rope_parameters=parameters("dynamic")),
    "dynamic with another key": dict(rope_parameters=parameters("dynamic", alpha=8.0, **LINEAR)),
    "dynamic by a half": dict(rope_parameters=parameters("dynamic", factor=0.5)),
    "scaling by dynamic": dict(rope_theta=1000.0, rope_scaling=dict(type="dynamic", factor=2.0)),
}
OF_NEOX = {
    "pct": dict(rotary_pct=0.5),
    "base": dict(rotary_emb_base=1000),
    "base and theta": dict(rotary_emb_base=1000, rope_theta=50.0),
    "base beside parameters": dict(rotary_emb_base=1000, rotary_pct=0.5, rope_parameters=dict(rope_type="default")),
}
OF_GEMMA3 = {
    "local base": dict(rope_theta=1000.0, rope_local_base_freq=50.0),
    "yarn for both": dict(rope_parameters=dict.fromkeys(["full_attention", "sliding_attention"], parameters("yarn", **TURNS, **LINEAR, **FIRST))),
    "yarn between pairs beside both": dict(
        rope_parameters=dict.fromkeys(["full_attention", "sliding_attention"], parameters("yarn", **TURNS, **LINEAR, **FIRST)) | dict(truncate=False)
    ),
    "dynamic for both": dict(rope_parameters=dict.fromkeys(["full_attention", "sliding_attention"], parameters("dynamic", **LINEAR))),
}
OF_GPTJ = {name: CASES[name] for name in ("nothing", "theta", "theta and share", "parameters", "linear")} | {
    "some turn": dict(rotary_dim=4),
    "all turn": dict(rotary_dim=72),
    "more turn than there are": dict(rotary_dim=74),
    "an odd number turns": dict(rotary_dim=63),
    "none turns": dict(rotary_dim=0),
    "a fraction turns": dict(rotary_dim=4.0),
    "nobody says how many turn": dict(rotary_dim=None),
    "another family's share": dict(rotary_dim=4, rotary_pct=0.5),
    "a flag of old files": dict(rotary_dim=4, rotary=False),
}
BOTH = {name: changes for name, changes in CASES.items() if "rope_parameters" in changes}


def for_layer_types(changes):
    """Gemma 3's form: an object for each type of layer."""
    both = dict(full_attention=changes["rope_parameters"], sliding_attention=parameters(base=None))
    return changes | dict(rope_parameters=both)


def layered(names):
    return [f"{name}, by layer type" for name in names]


# (families, cases, words): transformers reads these, and lancet refuses them. It takes an unknown key for one that may change something,
# numbers that transformers warns of for mistakes, and does not guess where transformers goes on with factors of another number than turn,
# or takes Gemma 3 as not scaled because the type has its old name.
LENGTH_BESIDE = ["longrope with length beside", "longrope with both lengths"]
USUAL = [family for family in FAMILIES if family not in ("phi3", "gemma3_text", "gpt_neox", "stablelm", "gptj")]
TYPE_ALONE = ["scaling", "scaling by yarn as Qwen2.5 has it", "scaling by yarn as DeepSeek has it", "scaling by dynamic"]
WRONG_YARN = {
    "yarn with another key": "alpha: unknown key of yarn, which has factor, original_max_position_embeddings, ",
    "yarn of short factors": "long_factor: unknown key of yarn",
    "yarn by a half": "factor: expected a number of at least 1, got 0.5",
    "yarn with turns the other way round": "beta_fast: expected at least beta_slow, 4, got 1",
    "yarn with turns of 0": "beta_slow: expected a number above 0, got 0",
    "yarn with a share below 0": "mscale: expected a number of at least 0, got -0.5",
}
WRONG_DYNAMIC = {
    "dynamic of another length": "original_max_position_embeddings: expected max_position_embeddings, 256, or no such key, got 16",
    "dynamic with another key": "alpha: unknown key of dynamic",
    "dynamic by a half": "factor: expected a number of at least 1, got 0.5",
}
REFUSED = [
    *((USUAL + ["gpt_neox", "stablelm"], [name], "rope_parameters." + words) for name, words in WRONG_YARN.items()),
    *((USUAL, [name], "rope_parameters." + words) for name, words in WRONG_DYNAMIC.items()),
    (USUAL + ["gpt_neox"], LENGTH_BESIDE, "original_max_position_embeddings: expected null, false or no such key"),
    (["gpt_neox"], ["longrope", "longrope with factors"], "rope_parameters.short_factor: expected a list of 1 numbers above 0"),
    (["gpt_neox"], ["theta and share", "share beside parameters", "share beside linear"], "partial_rotary_factor: expected null, false or no such key"),
    (["gemma3_text"], [name for name in BOTH if "scaling" not in name], "rope_parameters: expected an object for full_attention and one for"),
    *((["gemma3_text"], layered([name]), "full_attention." + words) for name, words in (WRONG_YARN | WRONG_DYNAMIC).items()),
    (["gemma3_text"], layered(["yarn between pairs", "yarn between pairs by null"]), "full_attention.truncate: expected true or no such key"),
    (["gemma3_text"], ["yarn between pairs beside both"], "rope_parameters.truncate: expected true or no such key"),
    (["gemma3_text"], TYPE_ALONE, "rope_scaling.type: expected its name to be rope_type"),
    (["gemma3_text"], ["scaling by yarn between pairs"], "rope_scaling.truncate: expected true or no such key"),
    (["gemma3_text"], layered(LENGTH_BESIDE), "original_max_position_embeddings: expected null, false or no such key"),
    (["gemma3_text"], layered(["scaling beside parameters", "empty scaling"]), "rope_scaling: expected no such key beside rope_parameters"),
    (["phi3"], ["yarn of short factors"], "rope_parameters: expected one of type default or longrope"),  # to transformers that is longrope
    (["gptj"], ["theta", "theta and share"], "rope_theta: expected null, false or no such key"),
    (["gptj"], ["parameters", "linear"], "rope_parameters: expected null, false or no such key"),
    (["gptj"], ["another family's share"], "rotary_pct: expected null, false or no such key"),
]


def cases_of(family):
    if family == "gptj":
        return OF_GPTJ
    if family == "gemma3_text":
        return CASES | OF_GEMMA3 | dict(zip(layered(BOTH), map(for_layer_types, BOTH.values())))
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
        with no_init_weights():
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
        net = make_net(Variant(family), SIZES.get(family, SMALL | GROUPED))
        net.save_pretrained(root / family)
        for number, (name, changes) in enumerate(cases_of(family).items()):
            folder = root / f"{family}-{number}"
            write_case(folder, root / family, changes)
            expected[family, name] = folder, theirs(folder, net.state_dict())
    found = lancet_logits_of_all([folder for folder, _ in expected.values()], ROWS, "f32", root)
    return {case: (ours, logits) for (case, (_, logits)), ours in zip(expected.items(), found, strict=True)}


@torch.no_grad()
def test_a_rotary_embedding_is_what_transformers_makes_of_the_keys(outcomes):
    read = {case: both for case, both in outcomes.items() if not isinstance(both[0], str)}
    assert [case for case, (_, logits) in read.items() if logits is None] == [], "transformers refuses these"
    worst = {case: max(nmse(a, b) for a, b in zip(*both, strict=True)) for case, both in read.items()}
    assert {case: error for case, error in worst.items() if error > 1e-9} == {}


def test_what_is_refused_beyond_that_is_known(outcomes):
    expected = {(family, name): words for families, names, words in REFUSED for family in families for name in names}
    refused = {case: ours for case, (ours, logits) in outcomes.items() if isinstance(ours, str) and logits is not None}
    assert sorted(refused) == sorted(expected)
    assert {case: ours for case, ours in refused.items() if expected[case] not in ours} == {}


def test_every_refusal_names_a_key_of_the_rotary_embedding(outcomes):
    for case, (ours, _) in outcomes.items():
        assert not isinstance(ours, str) or any(re.search(rf"^ *{key}\b", ours, re.M) for key in ROPE_KEYS), (case, ours)
