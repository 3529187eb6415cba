"""Models of transformers that something was put around or into: an adapter of PEFT is refused with what to do, and what only wraps is taken
off."""
import peft
import pytest
import torch
from conftest import FACTS

import lancet

FAST = {"method": "ft-m", "modules": {"down": [1]}, "steps": 3, "evaluate": [], "device": "cpu", "progress": False}


@pytest.fixture
def parts(tiny):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(tiny), AutoTokenizer.from_pretrained(tiny)


def with_adapter(model):
    torch.manual_seed(2)
    adapted = peft.get_peft_model(model, peft.LoraConfig(target_modules=["q_proj", "down_proj"], init_lora_weights=False, task_type="CAUSAL_LM"))
    return adapted.eval()


@pytest.mark.parametrize("give", [lambda adapted: adapted, lambda adapted: adapted.base_model.model], ids=["the PeftModel", "the model within"])
def test_an_adapter_is_refused_and_its_merged_model_is_taken(parts, give):
    model, tokenizer = parts
    adapted = with_adapter(model)
    for call in (lambda: lancet.open(give(adapted), tokenizer), lambda: lancet.edit(give(adapted), tokenizer, prompts="a", target_new="b")):
        with pytest.raises(lancet.ConfigError, match=r"model: a .*merge_and_unload\(\)"):
            call()
    ids = tokenizer("Piranha Games, created in", return_tensors="pt").input_ids
    expected = adapted(ids).logits[0, -1]
    merged = adapted.merge_and_unload()
    torch.testing.assert_close(merged(ids).logits[0, -1], expected, atol=1e-4, rtol=1e-4)
    with lancet.open(merged, tokenizer, dtype="f32", **FAST) as session:
        torch.testing.assert_close(session.to_transformers()(ids).logits[0, -1], expected, atol=1e-4, rtol=1e-4)


def test_an_adapter_that_transformers_put_in_is_refused(parts):
    model, tokenizer = parts
    model.add_adapter(peft.LoraConfig(target_modules=["q_proj"]))
    with pytest.raises(lancet.ConfigError, match=r"with an adapter of PEFT in it \(at model\.layers\.0\.self_attn\.q_proj\).*merge_and_unload"):
        lancet.open(model, tokenizer)


def test_edits_go_into_no_adapter(parts, tiny):
    model, _ = parts
    with lancet.open(tiny, **FAST) as session:
        session.edit(FACTS[:1])
        with pytest.raises(lancet.ConfigError, match=r"apply_to: model: a PeftModelForCausalLM .*merge_and_unload"):
            session.apply_to(with_adapter(model))


@pytest.mark.parametrize("wrap", [torch.compile, torch.nn.DataParallel], ids=["compiled", "parallel"])
def test_what_only_wraps_is_taken_off(parts, tiny, wrap):
    model, tokenizer = parts
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with lancet.open(wrap(model), tokenizer, dtype="f32", **FAST) as session:
        session.edit(FACTS[:1])
        applied = session.apply_to(wrap(model))
        changed = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
        assert changed == set(applied.weights) == {"model.layers.1.mlp.down_proj.weight"}
        applied.undo()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
