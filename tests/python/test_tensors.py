"""Tensors come without a copy and live on; a transformers model shares the session's memory."""
import gc
import pathlib
import sys

import lancet
import pytest
import torch
from conftest import DATA, FACTS, MODEL, ROOT
from lancet._hf import model_of
from torch.utils.dlpack import from_dlpack
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(ROOT / "tests" / "parity"))
from family_checkpoints import make_checkpoint  # noqa: E402


def test_deltas_are_what_changed(session, tmp_path):
    before = {name: from_dlpack(capsule) for name, capsule in session._engine.tensors()}
    edit = session.edit(FACTS)
    after = {name: from_dlpack(capsule) for name, capsule in session._engine.tensors()}
    assert sorted(edit.deltas) == [f"model.layers.{layer}.mlp.down_proj.weight" for layer in (0, 1)]
    for name, changes in edit.deltas.items():
        (left, right), = changes
        expected = (before[name].double() + left @ right).float().bfloat16().float()  # as the model is stored
        same = (after[name] == expected).double().mean()
        assert same > 0.999 and not torch.equal(after[name], before[name]), same  # f32 products round some otherwise
    for name in before.keys() - edit.deltas.keys():
        assert after[name].data_ptr() == before[name].data_ptr()


def test_keys_and_residuals_belong_to_edits(session):
    edit = session.edit(FACTS)
    for name, (left,) in {name: [pair[0] for pair in pairs] for name, pairs in edit.deltas.items()}.items():
        (keys,), (residuals,), (owners,) = edit.keys[name], edit.residuals[name], edit.key_edits[name]
        assert keys.shape == (768, 3) and keys.dtype == torch.float64 and owners == [["0"], ["1"], ["2"]]
        assert residuals.shape == (256, 3) == left.shape
        torch.testing.assert_close(residuals, left)
    assert [losses.dtype for losses in edit.losses] == [torch.float32] * 3 and all(len(losses) > 1 and losses[-1] < losses[0] for losses in edit.losses)


def test_tensors_share_memory_and_outlive_the_session(options):
    session = lancet.open(MODEL, **options)
    edit = session.edit(FACTS[:2])
    name = next(iter(edit.deltas))

    def addresses():
        return [edit.deltas[name][0][0].data_ptr(), edit.deltas[name][0][1].data_ptr(), edit.keys[name][0].data_ptr(), edit.residuals[name][0].data_ptr(), edit.losses[1].data_ptr()]

    assert addresses() == addresses(), "the same memory each time"
    left, losses = edit.deltas[name][0][0], edit.losses[0]
    array = losses.numpy()
    assert array.__array_interface__["data"][0] == losses.data_ptr()
    kept, kept_losses = left.clone(), losses.clone()
    session.undo()
    session.close()
    del session, edit
    gc.collect()
    torch.full((1 << 20,), 7.0)  # what was freed would be written over
    assert torch.equal(left, kept) and torch.equal(losses, kept_losses)


def test_a_capsule_that_nobody_takes_is_freed(session):
    for _ in range(50):
        session._engine.tensors()
    capsule = session._engine.tensors()[0][1]
    from_dlpack(capsule)
    with pytest.raises(RuntimeError):
        from_dlpack(capsule)


IDS = torch.tensor([[1, 100, 7, 2000, 42, 9]])


def test_hf_model_shares_the_weights(session, tmp_path):
    session.edit(FACTS[:2])
    model = session.hf_model()
    session.save(tmp_path / "saved")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "saved", dtype=torch.float32)
    with torch.no_grad():
        assert torch.equal(model(IDS).logits, loaded(IDS).logits)
        edited = model(IDS).logits
    own = {name: from_dlpack(capsule).data_ptr() for name, capsule in session._engine.tensors()}
    shared = {name: parameter.data_ptr() for name, parameter in model.named_parameters()}
    assert shared == own and model.lm_head.weight.data_ptr() == own["model.embed_tokens.weight"]
    assert not any(parameter.requires_grad for parameter in model.parameters()) and not model.training
    session.undo()
    with torch.no_grad():
        assert torch.equal(model(IDS).logits, edited), "the weights of the moment"
        assert session.hf_model(model) is model and not torch.equal(model(IDS).logits, edited)
        unedited = model(IDS).logits
    session.close()
    gc.collect()
    with torch.no_grad():
        assert torch.equal(model(IDS).logits, unedited), "it lives on"


@pytest.mark.parametrize("family", ["mistral", "qwen2", "qwen2_tied", "qwen3", "gemma", "gemma2", "gemma3", "olmo2", "stablelm", "gptj"])
def test_hf_model_of_families(family, tmp_path):
    make_checkpoint(family, tmp_path, MODEL)
    with lancet.open(tmp_path, progress=False) as session, torch.no_grad():
        model = session.hf_model()
        own = {from_dlpack(capsule).data_ptr() for _, capsule in session._engine.tensors()}
        assert {parameter.data_ptr() for parameter in model.parameters()} == own
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
        assert torch.equal(model(IDS).logits, loaded(IDS).logits)


@pytest.mark.parametrize(("family", "why"), [("phi3", "is a part of"), ("gpt2", "is a part of"), ("neox", "is a part of"), ("mixtral", "transformers has no weight of this name")])
def test_hf_model_is_a_copy_where_tensors_cannot_be_shared(family, why, tmp_path, caplog):
    make_checkpoint(family, tmp_path, MODEL)
    with lancet.open(tmp_path, progress=False) as session, torch.no_grad(), caplog.at_level("INFO", "lancet"):
        model = session.hf_model()
        assert any("hf_model: a copy" in line and why in line for line in caplog.messages)
        assert torch.equal(model(IDS).logits, AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)(IDS).logits)


@pytest.mark.parametrize("family", ["qwen2_tied", "phi3", "gpt2", "mixtral"])
def test_edits_go_into_a_model_in_memory_and_out_of_it(family, tmp_path, caplog):
    caplog.set_level("INFO", "lancet")
    make_checkpoint(family, tmp_path / "files", MODEL)
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "files", dtype=torch.float32).eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    with lancet.open(model, tokenizer, progress=False, method="ft", modules={"down": [1]}, steps=2, lr=0.01) as session, torch.no_grad():
        assert any("open: a copy of the " in line for line in caplog.messages)
        session.edit(FACTS[:1])
        unedited, edited = model(IDS).logits, session.to_transformers()(IDS).logits
        with session.apply_to(model) as applied:
            assert len(applied.weights) >= 1 and torch.equal(model(IDS).logits, edited) and not torch.equal(edited, unedited)
            with pytest.raises(lancet.ConfigError, match="take back what was applied before"):
                session.apply_to(model)
        assert applied.weights == [] and torch.equal(model(IDS).logits, unedited)
        assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
        session.undo()
        assert torch.equal(session.to_transformers()(IDS).logits, unedited)
        folder = pathlib.Path(session._model)
        assert folder.exists()
    assert not folder.exists()


def test_what_is_no_model_is_refused(session):
    for wrong, why in (((5, None), "model: expected a folder, a name of the hub, or a model"), ((session.hf_model(), None), "tokenizer: expected the tokenizer"),
                       ((MODEL, 5), "a model's folder has its own")):  # fmt: skip
        with pytest.raises(lancet.ConfigError, match=why):
            lancet.open(*wrong)
    with pytest.raises(lancet.ConfigError, match="apply_to: expected a model of transformers, got int"):
        session.apply_to(5)


def test_hf_model_of_several_devices(tiny, monkeypatch):
    monkeypatch.setattr("torch.utils.dlpack.from_dlpack", lambda tensor: tensor)
    weights = [("model.embed_tokens.weight", torch.zeros(2)), ("model.norm.weight", torch.zeros(2, device="meta"))]
    with pytest.raises(lancet.ConfigError, match="the weights lie on cpu, meta, and transformers would not bring"):
        model_of(str(tiny), weights, None)


def test_hf_model_of_packed_weights(tiny):
    with lancet.open(tiny, quantise_base="int8", progress=False) as session:
        with pytest.raises(lancet.ConfigError, match="kept packed"):
            session.hf_model()
