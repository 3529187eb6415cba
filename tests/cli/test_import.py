"""Other tools' hyper-parameter files and null spaces."""
import argparse
import gzip
import json

import numpy
import pytest
import safetensors
import torch
import yaml
from conftest import DATA, ROOT
from edits import edits_of
from safetensors.torch import load_file

CONFIG, CHECKPOINT = 2, 3
LLAMA = {
    "rewrite_module_tmp": "model.layers.{}.mlp.down_proj", "layer_module_tmp": "model.layers.{}", "mlp_module_tmp": "model.layers.{}.mlp",
    "attn_module_tmp": "model.layers.{}.self_attn", "ln_f_module": "model.norm", "lm_head_module": "lm_head",
}  # fmt: skip
STATISTICS = {"mom2_dataset": "wikipedia", "mom2_n_samples": 100000, "mom2_dtype": "float32"}
VALUES = {
    "layers": [4, 5, 6, 7, 8], "clamp_norm_factor": 0.75, "layer_selection": "all", "fact_token": "subject_last", "v_num_grad_steps": 25,
    "v_lr": 0.1, "v_loss_layer": 31, "v_weight_decay": 0.5, "kl_factor": 0.0625, "mom2_adjustment": True, "mom2_update_weight": 15000,
}  # fmt: skip
ALPHAEDIT = {"model_name": "Llama3-8B"} | VALUES | LLAMA | STATISTICS | {"nullspace_threshold": 2e-2, "L2": 10}
NSE = VALUES | LLAMA | STATISTICS | {"alpha": 2.5, "upper_bound": 50, "max_iterations": 3, "neuron_threshold": 1.0}
ROME = {"alg_name": "ROME", "device": 0, "fp16": True, "context_template_length_params": [[5, 10], [10, 10]]} | VALUES | LLAMA | STATISTICS
ROME |= {"layers": [5], "mom2_adjustment": False, "v_lr": 0.5, "v_weight_decay": 1e-3, "clamp_norm_factor": 4}
ROME.pop("mom2_update_weight")
ROME.pop("layer_selection")
FT = {
    "alg_name": "FT", "layers": [21], "num_steps": 25, "batch_size": 1, "max_length": 40, "lr": 5e-4, "weight_decay": 0, "kl_factor": 0,
    "norm_constraint": False, "objective_optimization": "prompt_last", "model_parallel": False,
} | LLAMA | {"rewrite_module_tmp": "model.layers.{}.mlp.down_proj.weight"}  # fmt: skip
ULTRAEDIT = {
    "alg_name": "ULTRAEDIT", "device": 0, "model_name": "x", "model_class": "AutoModelForCausalLM", "tokenizer_class": "AutoTokenizer",
    "tokenizer_name": "x", "inner_params": ["model.layers.11.mlp.gate_proj", "model.layers.12.mlp.gate_proj", "model.layers.18.mlp.up_proj"],
    "dropout": 0.0, "no_grad_layers": None, "lr": 1e-6, "token": "mask", "batch_size": 100, "batch_size_once": 10, "half": True,
}  # fmt: skip


def run_import(lancet, values, *more, name="hparams.json"):
    path = lancet.folder / name
    path.write_text(json.dumps(values) if name.endswith("json") else yaml.safe_dump(values, sort_keys=False))
    return lancet.run("import", "hparams", path, *more)


def imported(lancet, values, *more):
    """The job's sections; every key of the file stands in the list, in its order."""
    result = run_import(lancet, values, *more)
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("  ")]
    assert [line.split(":")[0].strip() for line in lines] == list(values)
    assert all(any(sign in line for sign in ["  → ", "  = ", "  - not used: "]) for line in lines)
    return yaml.safe_load(result.stdout)


def fates(lancet, values, *more):
    result = run_import(lancet, values, *more, "--json")
    assert result.returncode == 0, result.stderr
    return {row["key"]: (row["fate"], row["what"]) for row in json.loads(result.stdout)["keys"]}


def preset(name):
    return yaml.safe_load((DATA / "presets" / f"{name}.yaml").read_text())["editor"]


def is_within(part, whole):
    for key, value in part.items():
        if isinstance(value, dict):
            is_within(value, whole[key])
        else:
            assert whole[key] == pytest.approx(value) if not isinstance(value, str) else whole[key] == value, key


def numbers(tree):
    """5e-4 as JSON writes it is text to YAML 1.1's rules, a number to lancet's."""
    if isinstance(tree, dict):
        return {key: numbers(value) for key, value in tree.items()}
    try:
        return float(tree) if isinstance(tree, str) else tree
    except ValueError:
        return tree


@pytest.mark.parametrize(
    ("values", "name"),
    [(ALPHAEDIT, "llama-3-8b-alphaedit"), (NSE, "llama-3-8b-nse"), (ROME, "llama-3-8b-rome"), (FT, "llama-3-8b-ft")],
)
def test_a_published_file_is_its_preset(lancet, values, name):
    job = imported(lancet, values)
    is_within(numbers(job["editor"]), preset(name))
    assert job.get("run") == ({"dtype": "f16"} if values.get("fp16") else None)


def test_forward_replay_is_memit_with_targets_of_its_own(lancet):
    values = {"alg_name": "MEMIT-FE"} | VALUES | LLAMA | STATISTICS | {"clamp_norm_factor": 4}
    job = imported(lancet, values)
    assert job["editor"]["method"] == "memit" and job["editor"]["targets"] == "replay"
    is_within(numbers(job["editor"]), preset("llama-3-8b-memit-replay"))


def modules(layer, mlp, **more):
    """A family's names as the public code's files give them."""
    return {"rewrite_module_tmp": f"{layer}.{mlp}", "layer_module_tmp": layer, "mlp_module_tmp": f"{layer}.mlp", **more}


GPT_J = modules("transformer.h.{}", "mlp.fc_out", attn_module_tmp="transformer.h.{}.attn", ln_f_module="transformer.ln_f", lm_head_module="lm_head")
GPT2 = modules("transformer.h.{}", "mlp.c_proj", attn_module_tmp="transformer.h.{}.attn", ln_f_module="transformer.ln_f",
               lm_head_module="transformer.wte")  # fmt: skip
NEOX = modules("gpt_neox.layers.{}", "mlp.dense_4h_to_h", attn_module_tmp="gpt_neox.layers.{}.attention",
               ln_f_module="gpt_neox.final_layer_norm", lm_head_module="embed_out")  # fmt: skip
J_VALUES = VALUES | {"layers": [3, 4, 5, 6, 7, 8], "v_lr": 0.5, "v_loss_layer": 27}
XL_VALUES = VALUES | {"layers": [13, 14, 15, 16, 17], "v_lr": 0.5, "v_num_grad_steps": 20, "v_loss_layer": 47, "mom2_update_weight": 20000}
EASYEDIT = VALUES | LLAMA | STATISTICS | {"clamp_norm_factor": 4, "v_lr": 0.5, "v_weight_decay": 1e-3, "model_parallel": False}
EASYEDIT |= {"stats_dir": "./data/stats", "device": 0}
XL_ROME = ROME | GPT2 | {"layers": [17], "v_num_grad_steps": 20, "v_loss_layer": 47, "v_weight_decay": 0.5, "mom2_adjustment": True}
NULL_SPACE = {"model_name": "x", "nullspace_threshold": 2e-2, "L2": 10}
GEMMA_ULTRA = ULTRAEDIT | {"token": "ans", "inner_params": [f"language_model.model.layers.{layer}.mlp.{kind}_proj" for kind in ("gate", "up")
                                                          for layer in range(52, 61)]}  # fmt: skip
PHI_ULTRA = ULTRAEDIT | {"token": "ans", "class_name": "AutoModelForCausalLM",
                         "inner_params": [f"model.layers.{layer}.mlp.down_proj" for layer in range(30, 39)]}  # fmt: skip
J_ULTRA = {"name_or_path": "x", "class_name": "x", "edit_modules": [f"transformer.h.{layer}.mlp.fc_out" for layer in range(18, 27)]}


@pytest.mark.parametrize(
    ("values", "name", "method"),
    [
        (J_VALUES | GPT_J | STATISTICS, "gpt-j-6b-memit", "memit"),
        (J_VALUES | GPT_J | STATISTICS | NULL_SPACE, "gpt-j-6b-alphaedit", None),
        (J_VALUES | GPT_J | STATISTICS | {"alpha": 15, "upper_bound": 100, "max_iterations": 3, "neuron_threshold": 0.8}, "gpt-j-6b-nse", None),
        (J_VALUES | GPT_J | {"alg_name": "PMET", "v_num_grad_steps": 30, "v_lr": 0.2, "kl_factor": 1, "nll_loss_factor": 1,
                             "rewrite_module_tmps": ["transformer.h.{}.mlp.fc_out"]}, "gpt-j-6b-pmet", None),
        (J_ULTRA, "gpt-j-6b-ultraedit", None),
        (XL_VALUES | GPT2 | STATISTICS, "gpt2-xl-memit", "memit"),
        (XL_ROME, "gpt2-xl-rome", None),
        (XL_ROME | NEOX | {"layers": [15], "v_loss_layer": 43}, "gpt-neox-20b-rome", None),
        (FT | GPT2 | {"layers": [0], "batch_size": 3, "norm_constraint": 5e-4}, "gpt2-xl-ft-l", None),
        (EASYEDIT | {"alg_name": "MEMIT", "v_loss_layer": 27}, "qwen2.5-7b-memit", None),
        (EASYEDIT | NULL_SPACE | {"alg_name": "AlphaEdit", "L2": 1, "v_loss_layer": 27}, "qwen2.5-7b-instruct-alphaedit", None),
        (EASYEDIT | {"alg_name": "MEMIT"}, "mistral-7b-memit", None),
        (FT | {"norm_constraint": 5e-5}, "mistral-7b-ft-l", None),
        (PHI_ULTRA, "phi-4-ultraedit", None),
        (GEMMA_ULTRA, "gemma-3-27b-ultraedit", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_published_file_of_another_family_is_its_preset(lancet, values, name, method):
    job = imported(lancet, values, *(["--method", method] if method else []))
    editor = numbers(job["editor"])
    is_within(editor, preset(name))
    assert editor.get("layers", editor.get("modules")) == preset(name).get("layers", preset(name).get("modules"))


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        ("transformer.h.{}.mlp.c_fc", "up"), ("h.{}.mlp.c_proj", "down"), ("transformer.h.{}.mlp.fc_in", "up"),
        ("gpt_neox.layers.{}.mlp.dense_h_to_4h", "up"), ("model.language_model.layers.{}.mlp.gate_proj", "gate"),
    ],
)  # fmt: skip
def test_a_module_by_any_familys_names(lancet, module, kind):
    assert imported(lancet, FT | {"rewrite_module_tmp": f"{module}.weight"})["editor"]["modules"] == {kind: [21]}


def test_a_fused_gate_and_up_is_no_module(lancet):
    result = run_import(lancet, FT | {"rewrite_module_tmp": "model.layers.{}.mlp.gate_up_proj.weight"})
    assert result.returncode == CONFIG and "gate_up_proj.weight': expected an MLP projection" in result.stderr


def test_another_familys_model_checks_layers_and_modules(lancet):
    folder = ROOT / "tests" / "fixtures" / "published"
    values = XL_VALUES | GPT2 | STATISTICS
    found = fates(lancet, values, "--method", "memit", "--model", folder / "gpt2-xl.json")
    assert found["v_loss_layer"] == ("same", "the model's last layer")
    beyond = run_import(lancet, values, "--method", "memit", "--model", folder / "gpt2.json")
    assert beyond.returncode == CONFIG and "editor.layers: 13" in beyond.stderr, beyond.stderr
    assert run_import(lancet, GEMMA_ULTRA, "--model", folder / "gemma-3-27b-it.json").returncode == 0
    gate = run_import(lancet, GEMMA_ULTRA, "--model", folder / "pythia-6.9b.json")
    assert gate.returncode == CONFIG and "gate" in gate.stderr, gate.stderr


def test_memit_and_emmet_files_of_one_shape_need_the_method(lancet):
    values = VALUES | {"emmet_lambda": 0.1, "update_norm_lambda": 3}
    refused = run_import(lancet, values)
    assert refused.returncode == CONFIG and "--method memit or --method emmet" in refused.stderr
    memit, emmet = imported(lancet, values, "--method", "memit"), imported(lancet, values, "--method", "emmet")
    assert memit["editor"]["identity_weight"] == 3 and "slack" not in memit["editor"]
    assert emmet["editor"]["slack"] == 0.1 and emmet["editor"]["identity_weight"] == 3
    assert fates(lancet, values, "--method", "memit")["emmet_lambda"] == ("not used", "EMMET's alone")


def test_fine_tuning_has_three_names(lancet):
    assert imported(lancet, FT | {"norm_constraint": 5e-5})["editor"]["method"] == "ft-l"
    target = imported(lancet, FT | {"objective_optimization": "target_new", "rewrite_module_tmp": "model.layers.{}.mlp.up_proj.weight"})
    assert target["editor"]["method"] == "ft-m" and target["editor"]["modules"] == {"up": [21]}


def test_ultraedit_modules_by_name(lancet):
    editor = imported(lancet, ULTRAEDIT)["editor"]
    assert editor["modules"] == {"gate": [11, 12], "up": [18]} and editor["tokens"] == "all" and editor["batch"] == 10


def test_r_rome_flags_choose_the_keys(lancet):
    values = ROME | {"alg_name": "R-ROME", "enable_prompt_keys": True, "enable_random_prefix_keys": False}
    assert imported(lancet, values)["editor"]["keys"] == "prompt"


def test_what_is_not_used_says_why_and_what_is_unknown_says_so(lancet):
    found = fates(lancet, ALPHAEDIT | {"P_loc": "./null_space_project.pt", "colour": "blue"})
    assert found["colour"][0] == "unknown"
    assert found["P_loc"][0] == "not used" and "statistics.import_null_space" in found["P_loc"][1]
    assert found["mom2_update_weight"][0] == "not used" and found["v_lr"] == ("mapped", "editor.values.lr")
    assert found["fact_token"][0] == "same"


def test_what_the_file_leaves_out_is_automatic(lancet):
    assert imported(lancet, {"alg_name": "MEMIT", "v_lr": 0.1})["editor"] == {"method": "memit", "values": {"lr": 0.1}}


def test_a_model_checks_layers(lancet):
    model = ROOT / "tests" / "fixtures" / "llama-3-70b"
    assert fates(lancet, ALPHAEDIT, "--model", model)["v_loss_layer"] == ("not used", "lancet takes the loss from the last layer, 79")
    beyond = run_import(lancet, ALPHAEDIT | {"layers": [79]}, "--model", model)
    assert beyond.returncode == CONFIG and "editor.layers: 79" in beyond.stderr


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"fact_token": "last"}, "subject_last"),
        ({"rewrite_module_tmp": "transformer.h.{}.mlp.c_fc"}, "down_proj"),
        ({"rewrite_module_tmp": "transformer.h.{}"}, "down_proj"),
        ({"v_lr": "fast"}, "v_lr"),
        ({"layers": ["a"]}, "layers"),
        ({"layer_selection": "random"}, "all"),
        ({"alg_name": "SERAC"}, "SERAC"),
        ({"v_num_grad_steps": 2.5}, "steps"),
    ],
)
def test_what_lancet_cannot_do_is_refused(lancet, change, part):
    result = run_import(lancet, ALPHAEDIT | change)
    assert result.returncode == CONFIG and part in result.stderr and not result.stdout, result.stderr


def test_a_file_without_any_known_key(lancet):
    assert run_import(lancet, {"a": 1}).returncode == CONFIG
    assert lancet.run("import", "hparams", lancet.folder / "none.json").returncode == CONFIG


# ---- null_space_project.pt ----


def alphaedit(lancet, **changes):
    values = {"steps": 8, "lr": 0.5}
    editor = {"method": "alphaedit", "layers": [0, 1], "values": values, "contexts": ["{}"]}
    if "import_null_space" not in changes.get("statistics", {}):
        editor["null_space_below"] = 1.0
    return lancet.job(editor=editor, evaluate=[], **changes)


@pytest.fixture
def projections(lancet):
    """P of both layers, from the null spaces that lancet finds; made as AlphaEdit's code saves it."""
    stats = lancet.run("stats", lancet.write(alphaedit(lancet)), "--json")
    assert stats.returncode == 0, stats.stderr
    stacked = []
    for layer in json.loads(stats.stdout)["layers"]:
        basis = load_file(layer["factor_file"])["basis"]
        with safetensors.safe_open(layer["factor_file"], "pt") as file:
            rank = int(float(file.metadata()["rank"]))
        within = basis.T @ basis
        stacked.append(within if len(basis) == rank else torch.eye(len(within), dtype=torch.float64) - within)
    return torch.stack(stacked).float()


def save(lancet, value, name="null_space_project.pt", **options):
    torch.save(value, lancet.folder / name, **options)
    return {"import_null_space": name}


def test_a_stored_projection_edits_as_the_null_space_does(lancet, projections):
    assert lancet.edit(alphaedit(lancet)).returncode == 0
    expected = edits_of(lancet.out)
    out = lancet.folder / "second"
    result = lancet.edit(alphaedit(lancet, statistics=save(lancet, projections), output={"dir": str(out)}))
    assert result.returncode == 0, result.stderr
    found = edits_of(out)
    assert found.keys() == expected.keys()
    assert len(expected) == 2
    for name, changes in expected.items():
        for ours, theirs in zip(found[name], changes, strict=True):
            for a, b in zip(ours, theirs, strict=True):  # left, right
                assert numpy.linalg.norm(a - b) / numpy.linalg.norm(b) < 1e-4
    report = json.loads((out / "report.json").read_text())["statistics"]
    assert [entry["layer"] for entry in report["imported_from"]] == [0, 1]
    assert yaml.safe_load((out / "job.yaml").read_text())["statistics"] == {
        "import_null_space": str(lancet.folder / "null_space_project.pt")
    }


def test_a_p_loc_beside_the_file_is_taken(lancet):
    torch.save(torch.zeros(1), lancet.folder / "P.pt")
    job = imported(lancet, ALPHAEDIT | {"P_loc": "P.pt"})
    assert job["statistics"] == {"import_null_space": str(lancet.folder / "P.pt")}
    assert "null_space_below" not in job["editor"]
    found = fates(lancet, ALPHAEDIT | {"P_loc": "P.pt"})
    assert found["nullspace_threshold"] == ("not used", "the stored projections were made with it")


def test_files_that_are_no_projections(lancet, projections):
    def refused(value, *parts, **options):
        result = lancet.edit(alphaedit(lancet, statistics=save(lancet, value, **options)))
        assert result.returncode == CHECKPOINT, result.stderr
        for part in ["null_space_project.pt", *parts]:
            assert part in result.stderr
        assert not lancet.out.exists()

    refused(projections[:1], "[1, 768, 768]", "[2, 768, 768]")
    refused(projections[:, :100, :100].clone(), "[2, 100, 100]")
    refused({"P": projections}, "one tensor")
    refused(argparse.Namespace(P=projections))
    refused(projections.half(), "F16", "expected F32 or F64")
    refused(projections + 0.1 * torch.randn_like(projections), "layer 0", "diagonal")
    refused(2 * projections, "applied twice")
    refused(torch.eye(768).repeat(2, 1, 1), "768 of 768")
    refused(projections, "torch.save", _use_new_zipfile_serialization=False)
    (lancet.folder / "null_space_project.pt").write_bytes(b"no archive")
    result = lancet.edit(alphaedit(lancet, statistics={"import_null_space": "null_space_project.pt"}))
    assert result.returncode == CHECKPOINT and "torch.save" in result.stderr
    assert lancet.edit(alphaedit(lancet, statistics={"import_null_space": "none.pt"})).returncode == CHECKPOINT


def test_keys_beside_a_null_space_and_other_methods(lancet, projections):
    source = save(lancet, projections)
    result = lancet.edit(alphaedit(lancet, statistics=source | {"tokens": 5}))
    assert result.returncode == CONFIG and "tokens" in result.stderr
    result = lancet.edit(lancet.job(statistics=source))
    assert result.returncode == CONFIG and "memit needs moments" in result.stderr
    job = alphaedit(lancet, statistics=source)
    result = lancet.edit(job, "--set", "editor.null_space_below=0.02")
    assert result.returncode == CONFIG and "editor.null_space_below: has no meaning beside statistics.import_null_space" in result.stderr
    assert lancet.run("plan", lancet.write(job), "--set", "editor.null_space_below=auto").returncode == 0


def test_a_presets_threshold_gives_way_to_stored_projections(lancet):
    """It belongs to the preset, not to the job: the projections take its place, and the job as it was run says auto."""
    torch.save(torch.zeros(1), lancet.folder / "P.pt")
    job = lancet.job(editor={"preset": "./own.yaml"}, statistics={"import_null_space": "P.pt"})
    config = json.loads((DATA / "demo-model" / "config.json").read_text())
    facts = {key: config[key] for key in ["model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                          "num_key_value_heads", "max_position_embeddings", "vocab_size"]}  # fmt: skip
    preset = {"models": ["demo"], "config": facts, "source": "here", "editor": {"method": "alphaedit", "layers": [0, 1], "null_space_below": 0.02}}
    lancet.write(json.dumps(preset), "own.yaml")
    planned = lancet.run("plan", lancet.write(job), "--devices", "80GiB")
    assert planned.returncode == 0, planned.stderr
    planned = lancet.run("plan", lancet.write(job), "--devices", "80GiB", "--set", "editor.null_space_below=0.02")
    assert planned.returncode == CONFIG and "editor.null_space_below" in planned.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(json.dumps(ROME).encode()), "is compressed by gzip: unpack it first"),
        (json.dumps(ROME).encode("utf-16"), "is UTF-16"),
        (b"<!DOCTYPE html><html></html>", "is a web page in the place of the file"),
        (json.dumps(ROME | {"alg_name": ["MEMIT"]}).encode(), "alg_name: expected text, got [MEMIT]"),
        (json.dumps(ROME | {"alg_name": "x" * 1_000_000}).encode(), "expected a file of MEMIT"),
        (json.dumps(ROME | {"rewrite_module_tmp": "model.layers.{}.mlp.down_proj" * 100_000}).encode(), "rewrite_module_tmp: 'model.layers.{}.mlp.down_proj"),
        (json.dumps({f"k{i}": i for i in range(200_000)} | ROME).encode(), "a map of more than 10000 keys"),
        (b"[" * 100_000, "hparams.yaml:1:1"),
    ],
    ids=["gzip", "utf-16", "page", "a list", "a long name", "a long value", "many keys", "deep"],
)
def test_damaged_files_are_refused_shortly_and_soon(lancet, content, words):
    path = lancet.folder / "hparams.yaml"
    path.write_bytes(content)
    result = lancet.run("import", "hparams", path)
    assert result.returncode == CONFIG and words in result.stderr and result.stdout == "", result.stderr[:1000]
    assert len(result.stderr) < 1500


def test_lines_of_an_old_mac_are_lines(lancet):
    path = lancet.folder / "hparams.yaml"
    path.write_bytes(yaml.safe_dump(ROME).replace("\n", "\r").encode())
    result = lancet.run("import", "hparams", path)
    assert result.returncode == 0 and yaml.safe_load(result.stdout)["editor"]["method"] == "rome", result.stderr
