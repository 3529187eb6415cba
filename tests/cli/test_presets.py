"""Published options by preset: chosen by config.json, overridden by the job, written out resolved."""
import functools
import json
import shutil
import subprocess

import pytest
import yaml
from conftest import DATA, LANCET, ROOT

CONFIG = 2
PRESETS = sorted(path.stem for path in (DATA / "presets").glob("*.yaml"))


@functools.cache
def read(name):
    return yaml.safe_load((DATA / "presets" / f"{name}.yaml").read_text())


PUBLISHED = {
    "gpt2-xl": "gpt2-xl", "gpt-j-6b": "gpt-j-6b", "gpt-neox-20b": "gpt-neox-20b", "qwen2.5-7b": "Qwen2.5-7B",
    "qwen2.5-7b-instruct": "Qwen2.5-7B-Instruct", "mistral-7b": "Mistral-7B-v0.1", "mistral-7b-v0.3": "Mistral-7B-v0.3", "phi-4": "phi-4",
    "gemma-3-27b": "gemma-3-27b-it",
}  # fmt: skip


def published_config(name):
    """The config.json of the model that a preset of a family other than Llama is for."""
    model = max((model for model in PUBLISHED if name.startswith(f"{model}-")), key=len)
    return ROOT / "tests" / "fixtures" / "published" / f"{PUBLISHED[model]}.json"


def write_model(folder, facts, **changes):
    """A model folder of which config.json alone is there."""
    folder.mkdir()
    base = json.loads((ROOT / "tests" / "fixtures" / "llama-3-70b" / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(base | facts | changes))
    return folder


def model_of(lancet, name):
    """A model that a preset is for; its folder's name says nothing."""
    if "weights" in read(name):
        return bare_model(lancet)
    folder = lancet.folder / "any-name"
    if read(name)["config"]["model_type"] == "llama":
        return write_model(folder, read(name)["config"])
    folder.mkdir()
    shutil.copy(published_config(name), folder / "config.json")
    return folder


def bare_model(lancet):
    """The demo model without its lancet.yaml, in a folder whose name says nothing."""
    model = lancet.copy_model("weights")
    (model / "lancet.yaml").unlink()
    return model


def one_line(lancet, model, *more):
    return lancet.run(
        "edit", "--model", model, "--prompt", "{}, created in", "--subject", "Piranha Games", "--target", "London", "--out", lancet.out,
        "--set", "run.dtype=f32", "--set", "evaluate=[efficacy]", *more,
    )  # fmt: skip


def test_the_list_has_every_file_and_its_text(lancet):
    listed = json.loads(lancet.run("presets", "--json").stdout)
    assert [row["name"] for row in listed] == PRESETS and len(PRESETS) > 20
    for row in listed:
        assert row["source"] and row["models"]
        shown = lancet.run("presets", row["name"])
        assert shown.stdout == (DATA / "presets" / f"{row['name']}.yaml").read_text()
    table = lancet.run("presets").stdout
    assert all(name in table for name in PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_auto_takes_the_preset_of_the_config(lancet, name):
    preset = read(name)
    model = model_of(lancet, name)
    job = lancet.job(model=str(model), editor={"method": preset["editor"]["method"], "preset": "auto"}, run={"dtype": "bf16"})
    result = lancet.run("plan", lancet.write(job), "--devices", "8x200GiB")
    assert result.returncode == 0, result.stderr
    taken = [line for line in result.stderr.splitlines() if line.startswith("preset  ")]
    automatic = [n for n in PRESETS if read(n)["config"] == preset["config"] and read(n)["editor"]["method"] == preset["editor"]["method"]
                 and read(n).get("auto", True)]  # fmt: skip
    assert len(automatic) == 1 and len(taken) == 1 and taken[0].startswith(f"preset  {automatic[0]}: ")
    of_model = {row["name"] for row in json.loads(lancet.run("presets", "--json", "--model", model).stdout)}
    assert of_model == {n for n in PRESETS if read(n)["config"] == preset["config"]}


def test_a_config_that_differs_has_no_preset_and_is_told_what_there_is(lancet):
    model = write_model(lancet.folder / "llama-3-8b", read("llama-3-8b-memit")["config"], num_hidden_layers=33)
    job = lancet.job(model=str(model), editor={"method": "memit", "preset": "auto"})
    result = lancet.run("plan", lancet.write(job), "--devices", "80GiB")
    assert result.returncode == CONFIG
    for part in ["memit", "num_hidden_layers 33", "llama-3-8b-memit (Meta-Llama-3-8B", "lancet tune"]:
        assert part in result.stderr


def test_other_weights_of_the_demos_shape_have_no_preset(lancet):
    model = bare_model(lancet)
    (model / "model.safetensors").unlink()  # a plan goes without them
    job = lancet.job(model=str(model), editor={"method": "memit", "preset": "auto"})
    refused = lancet.run("plan", lancet.write(job), "--devices", "80GiB")
    assert refused.returncode == CONFIG
    assert "demo-model-memit is of other weights of this shape: preset: demo-model-memit takes it all the same" in refused.stderr
    job["editor"]["preset"] = "demo-model-memit"
    assert lancet.run("plan", lancet.write(job), "--devices", "80GiB").returncode == 0


def test_one_line_edit_of_a_model_without_defaults(lancet):
    result = one_line(lancet, bare_model(lancet), "--set", "statistics.tokens=3000", "--set", f"statistics.cache={lancet.cache}")
    assert result.returncode == 0, result.stderr
    assert "preset  demo-model-memit: " in result.stderr and "corpus: self" in result.stderr
    resolved = yaml.safe_load((lancet.out / "job.yaml").read_text())
    preset = read("demo-model-memit")["editor"]
    assert "preset" not in resolved["editor"] and resolved["statistics"]["corpus"] == "self"
    assert {key: resolved["editor"][key] for key in ["method", "layers", "covariance_weight"]} == {
        key: preset[key] for key in ["method", "layers", "covariance_weight"]
    }
    assert preset["values"].items() <= resolved["editor"]["values"].items()
    again = lancet.folder / "again"
    assert lancet.run("edit", lancet.out / "job.yaml", "--set", f"output.dir={again}").returncode == 0
    assert (again / "model.safetensors").read_bytes() == (lancet.out / "model.safetensors").read_bytes()


FEW = ["--set", "editor.values.steps=2", "--set", f"statistics.corpus={DATA / 'requests' / 'demo-corpus.txt'}", "--set", "statistics.tokens=2000"]


def presets_told(result):
    assert result.returncode == 0, result.stderr
    return [line for line in result.stderr.splitlines() if line.startswith("preset  ")]


def test_an_edit_says_in_one_line_which_preset_it_took_and_how_to_go_without(lancet):
    model = bare_model(lancet)
    taken = presets_told(one_line(lancet, model, *FEW))
    assert len(taken) == 1 and taken[0].startswith("preset  demo-model-memit: ") and taken[0].endswith(" (editor.preset: null goes without)"), taken
    layers = yaml.safe_load((lancet.out / "job.yaml").read_text())["editor"]["layers"]
    assert layers == read("demo-model-memit")["editor"]["layers"]
    shutil.rmtree(lancet.out)
    without = one_line(lancet, model, *FEW, "--set", "editor.preset=null")
    assert presets_told(without) == [] and "editor  memit with automatic options" in without.stderr, without.stderr
    automatic = yaml.safe_load((lancet.out / "job.yaml").read_text())["editor"]
    assert "preset" not in automatic and automatic["covariance_weight"] != read("demo-model-memit")["editor"]["covariance_weight"]
    shutil.rmtree(lancet.out)
    job = lancet.job(model=str(model), editor={"method": "memit", "preset": None, "values": {"steps": 2}}, evaluate=[])
    assert presets_told(lancet.edit(job)) == []
    assert yaml.safe_load((lancet.out / "job.yaml").read_text())["editor"]["covariance_weight"] == automatic["covariance_weight"]


def test_the_tutorials_copy_of_the_demo_goes_without_its_preset_where_the_line_is_deleted(lancet):
    """docs/getting-started.md: without lancet.yaml, and without the line that `lancet init` writes."""
    model = bare_model(lancet)
    made = lancet.run("init", "--model", model, "--requests", DATA / "requests" / "demo.json")
    assert made.returncode == 0 and made.stdout.count("preset: auto") == 1, made.stdout
    shorter = "".join(line for line in made.stdout.splitlines(keepends=True) if "preset: auto" not in line)
    settings = [*FEW, "--set", "requests.limit=2", "--set", "evaluate=[]", "--set", f"statistics.cache={lancet.cache}"]
    with_preset = presets_told(lancet.run("edit", lancet.write(made.stdout, "job.yaml"), *settings, "--set", f"output.dir={lancet.folder / 'with'}"))
    assert len(with_preset) == 1 and with_preset[0].startswith("preset  demo-model-memit: ")
    assert presets_told(lancet.run("edit", lancet.write(shorter, "shorter.yaml"), *settings, "--set", f"output.dir={lancet.out}")) == []
    assert "preset" not in (lancet.out / "job.yaml").read_text()


def test_one_line_edit_by_a_method_that_needs_no_text(lancet):
    result = one_line(lancet, bare_model(lancet), "--set", "editor={method: ft, modules: {down: [1]}, steps: 2}")
    assert result.returncode == 0, result.stderr
    assert "statistics" not in yaml.safe_load((lancet.out / "job.yaml").read_text())


def test_the_jobs_own_keys_win(lancet):
    job = lancet.job(editor={"preset": "demo-model-memit", "layers": [0], "values": {"steps": 3}, "contexts": ["{}"]})
    assert lancet.edit(job).returncode == 0
    editor = yaml.safe_load((lancet.out / "job.yaml").read_text())["editor"]
    assert editor["method"] == "memit" and editor["layers"] == [0] and editor["contexts"] == ["{}"]
    assert editor["values"]["steps"] == 3 and editor["values"]["lr"] == 0.5 and editor["covariance_weight"] == 300


def test_a_file_is_taken_from_the_jobs_folder_and_from_lancet_yaml(lancet):
    shutil.copy(DATA / "presets" / "demo-model-memit.yaml", lancet.folder / "mine.yaml")
    job = lancet.job(editor={"preset": "./mine.yaml", "values": {"steps": 2}}, evaluate=[])
    assert lancet.edit(job).returncode == 0
    model = bare_model(lancet)
    shutil.copy(DATA / "presets" / "demo-model-memit.yaml", model / "tuned.yaml")
    (model / "lancet.yaml").write_text("editor: {preset: ./tuned.yaml}\n")
    job = lancet.job(model=str(model), editor=None, evaluate=[], output={"dir": str(lancet.folder / "second")})
    result = lancet.edit(job)
    assert result.returncode == 0 and "preset  tuned: " in result.stderr


def refuses(lancet, editor, *parts):
    result = lancet.edit(lancet.job(editor=editor))
    assert result.returncode == CONFIG, result.stderr
    for part in parts:
        assert part in result.stderr


def test_bad_presets(lancet):
    refuses(lancet, {"method": "memit", "preset": "llama-3-8b-memitt"}, "Did you mean llama-3-8b-memit?")
    refuses(lancet, {"method": "rome", "preset": "demo-model-memit"}, "rome", "memit")
    refuses(lancet, {"preset": "auto"}, "editor.method")
    refuses(lancet, {"preset": "./none.yaml"}, "none.yaml")
    (lancet.folder / "bad.yaml").write_text("models: [x]\nsource: y\nconfig: {model_type: llama}\neditor: {method: memit, layer: [1]}\n")
    refuses(lancet, {"preset": "./bad.yaml"}, "bad.yaml", "hidden_size", "layer")
    refuses(lancet, {"preset": "demo-model-memit", "layrs": [1]}, "layrs", "layers")


def test_a_preset_of_another_model_is_taken_with_a_warning(lancet):
    job = lancet.job(editor={"preset": "llama-2-7b-memit", "layers": [0, 1], "values": {"steps": 2}}, evaluate=[])
    result = lancet.edit(job)
    assert result.returncode == 0 and "warning: preset llama-2-7b-memit is of Llama-2-7b" in result.stderr


def test_presets_need_no_files_beside_the_program(lancet):
    program = lancet.folder / "elsewhere" / "lancet"
    program.parent.mkdir()
    shutil.copy(LANCET, program)
    shown = subprocess.run([program, "presets", "llama-3-8b-memit"], capture_output=True, text=True, cwd=lancet.folder, timeout=60)
    assert shown.stdout == (DATA / "presets" / "llama-3-8b-memit.yaml").read_text()
