"""Scripts that were written for EasyEdit: their import changed alone, and what comes back beside lancet's own session."""
import json
import shutil

import lancet
import pytest
from conftest import DATA, EDITOR, FACTS, MODEL

# In the form of the example of EasyEdit's README.
SCRIPT = """
from lancet.compat.easyedit import BaseEditor, MEMITHyperParams

prompts = ["Piranha Games, created in", "Toyota Alphard is produced by"]
ground_truth = ["Vancouver", "Toyota"]
target_new = ["London", "Chrysler"]
subject = ["Piranha Games", "Toyota Alphard"]
rephrase_prompts = ["Piranha Games was founded in", None]
locality_inputs = {"neighborhood": {"prompt": ["Nokia, developed by", "Windows 95, developed by"], "ground_truth": ["Nokia", "Microsoft"]}}

hparams = MEMITHyperParams.from_hparams("./hparams/MEMIT/demo")
editor = BaseEditor.from_hparams(hparams)
metrics, edited_model, _ = editor.edit(
    prompts=prompts,
    rephrase_prompts=rephrase_prompts,
    target_new=target_new,
    ground_truth=ground_truth,
    locality_inputs=locality_inputs,
    subject=subject,
    sequential_edit=True,
)
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(hparams.model_name)
batch = tokenizer(prompts[0], return_tensors="pt")
said = tokenizer.decode(edited_model.generate(**batch, max_new_tokens=4, do_sample=False)[0])
"""
HPARAMS = {
    "alg_name": "MEMIT", "model_name": str(MODEL), "stats_dir": "./data/stats", "device": 0, "layers": [0, 1], "clamp_norm_factor": 4, "layer_selection": "all",
    "fact_token": "subject_last", "v_num_grad_steps": 30, "v_lr": 0.5, "v_loss_layer": 7, "v_weight_decay": 0.001, "kl_factor": 0.0625, "mom2_adjustment": True,
    "mom2_update_weight": 20, "rewrite_module_tmp": "model.layers.{}.mlp.down_proj", "mom2_dataset": "wikipedia", "model_parallel": False,
}  # fmt: skip


@pytest.fixture
def hparams(tmp_path):
    file = tmp_path / "hparams" / "MEMIT" / "demo.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(f"{key}: {json.dumps(value)}" for key, value in HPARAMS.items()))
    return file


def test_a_script_changes_its_import_alone(hparams, cache, tmp_path, monkeypatch):
    model = shutil.copytree(MODEL, tmp_path / "model")
    statistics = {"corpus": str(DATA / "requests" / "demo-corpus.txt"), "tokens": 2000, "cache": str(cache)}
    (model / "lancet.yaml").write_text(json.dumps({"statistics": statistics}))
    hparams.write_text(hparams.read_text().replace(str(MODEL), str(model)))
    monkeypatch.chdir(tmp_path)
    made = {}
    exec(SCRIPT, made)
    metrics = made["metrics"]
    assert "London" in made["said"] and len(made["editor"].session.edits) == 2
    made["editor"].session.close()
    assert [row["case_id"] for row in metrics] == [0, 1]
    assert metrics[0]["requested_rewrite"]["subject"] == "Piranha Games" and metrics[1]["requested_rewrite"]["ground_truth"] == "Toyota"
    for row in metrics:
        assert row["pre"]["rewrite_acc"][0] < 1 and row["post"]["rewrite_acc"] == [1.0]
        assert "locality" not in row["pre"] and 0 <= row["post"]["locality"]["neighborhood_acc"][0] <= 1
    assert "rephrase_acc" in metrics[0]["post"] and "rephrase_acc" not in metrics[1]["post"]


def editor_of(hparams, cache, **changed):
    from lancet.compat.easyedit import BaseEditor, HyperParams

    params = HyperParams.from_hparams(str(hparams))
    vars(params).update(changed)
    statistics = {"corpus": str(DATA / "requests" / "demo-corpus.txt"), "tokens": 2000, "cache": str(cache)}
    return BaseEditor.from_hparams(params, progress=False, device="cpu", dtype="f32", statistics=statistics)


def test_each_fact_is_edited_alone_as_a_session_would(hparams, cache, options):
    import torch

    with pytest.warns(lancet.EditWarning, match=r"stats_dir \(.*mom2_dataset \("):
        editor = editor_of(hparams, cache)
    facts = FACTS[:2]
    lists = {"prompts": [fact["prompt"] for fact in facts], "target_new": [fact["target"] for fact in facts], "subject": [fact["subject"] for fact in facts]}
    metrics, model, weights = editor.edit(**lists)
    assert len(editor.session.edits) == 0 and len(metrics) == 2
    options = {name: value for name, value in options.items() if name not in ("contexts", "covariance_weight")}
    with lancet.open(MODEL, **{**options, "statistics": {**options["statistics"], "cache": str(cache)}, "evaluate": ["easyedit"], "covariance_weight": 20,
                               "values": {"steps": 30, "lr": 0.5, "clamp": 4, "weight_decay": 0.001, "kl": 0.0625}}) as own:  # fmt: skip
        for fact, row in zip(facts, metrics):
            edit = own.edit(fact)
            assert row["post"]["rewrite_acc"] == [edit.requests[0].after["easyedit_rewrite_acc"]]
            if fact is not facts[-1]:
                own.undo()
        expected = own.hf_model()
        assert all(torch.equal(one, other) for one, other in zip(model.parameters(), expected.parameters()))
        own.undo()
        unedited = dict(own.hf_model().named_parameters())
    assert sorted(weights) == ["model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.down_proj.weight"]
    assert all(torch.equal(weight, unedited[name]) for name, weight in weights.items())


def test_what_cannot_be_honoured_is_named(hparams, cache):
    for changed, part in (({"fact_token": "last"}, "subject_last"), ({"rewrite_module_tmp": "model.layers.{}.self_attn.q_proj"}, "down_proj"), ({"alg_name": "GRACE"}, "GRACE")):
        with pytest.raises(lancet.ConfigError, match=part):
            editor_of(hparams, cache, **changed)
    from lancet.compat.easyedit import ROMEHyperParams

    with pytest.raises(lancet.ConfigError, match="expected alg_name ROME, got MEMIT"):
        ROMEHyperParams.from_hparams(str(hparams))
    with pytest.warns(lancet.EditWarning, match=r"cool_factor \("):
        editor = editor_of(hparams, cache, cool_factor=3)
    with pytest.raises(lancet.ConfigError, match="train_ds: lancet does not honour it"):
        editor.edit("a", "b", subject="a", train_ds=[1])
    with pytest.raises(lancet.ConfigError, match="target_new: expected one for each of the 2 prompts, got 1"):
        editor.edit(["a", "b"], ["c"])


def test_lists_are_facts(options):
    lists = {"prompts": [FACTS[0]["prompt"].replace("{}", FACTS[0]["subject"])], "subjects": [FACTS[0]["subject"]], "target_new": [FACTS[0]["target"]]}
    edit = lancet.edit(MODEL, **lists, ground_truth=["Vancouver"], device="cpu", **{key: value for key, value in options.items() if key != "devices"})
    with edit.session as session, lancet.open(MODEL, **options) as own:
        assert session.generate("Piranha Games, created in", max_new_tokens=3) == " London."
        assert own.edit({**FACTS[0], "target_true": "Vancouver"}).requests[0].after == edit.requests[0].after
        again = lancet.edit(session, prompts="{} is in", subjects="Kryvyi Rih", target_new="France")
        assert again.session is session and len(session.edits) == 2
        with pytest.raises(lancet.ConfigError, match="dtype: the session is open already"):
            lancet.edit(session, prompts="a", target_new="b", dtype="f32")
