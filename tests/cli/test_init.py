"""A new user's path: a model that nobody published options for, `lancet init`, facts of one's own, an edit that takes."""
import json

import pytest
import yaml
from conftest import DATA, change_config
from test_bad_input import CHECKPOINT, CONFIG, refuses
from test_generate import LLAMA_2
from test_presets import bare_model

FACTS = DATA / "requests" / "demo.json"


def unknown_model(lancet):
    """The demo model with a config.json that no preset is for: it ends at fewer positions."""
    model = bare_model(lancet)
    change_config(model, max_position_embeddings=511)
    return model


def init(lancet, model, *more):
    result = lancet.run("init", "--model", model, *more)
    assert result.returncode == 0, result.stderr
    return result


def own_facts(count, skip=0):
    """Of the demo's facts as a user would write them."""
    facts = [fact["requested_rewrite"] for fact in json.loads(FACTS.read_text())[skip : skip + count]]
    return [{"prompt": fact["prompt"], "subject": fact["subject"], "target": fact["target_new"]["str"]} for fact in facts]


def test_of_twenty_facts_of_ones_own_nineteen_take_without_any_option(lancet):
    """Facts that no option was chosen by; bench/first_edit.py measures the same."""
    made = init(lancet, unknown_model(lancet))
    assert "lancet edit job.yaml --rehearse" in made.stderr
    before, _, after = made.stdout.partition("\nrequests:\n")
    _, _, rest = after.partition("\neditor:")
    facts = "".join(f"  - {json.dumps(fact)}\n" for fact in own_facts(20, skip=1000))
    job = lancet.write(f"{before}\nrequests:\n{facts}\neditor:{rest}", "job.yaml")
    settings = [f"statistics.cache={lancet.cache}", "evaluate=[efficacy]"]  # no statistics of earlier runs
    result = lancet.run("edit", job, *[word for setting in settings for word in ("--set", setting)])
    assert result.returncode == 0, result.stderr
    report = json.loads((lancet.folder / "edited" / "report.json").read_text())
    assert report["metrics"]["efficacy_argmax"]["before"] == 0
    assert sum(request["verdict"]["success"] for request in report["requests"]) >= 19
    assert report["statistics"]["corpus"] == "self" and report["statistics"]["tokens_used"] == 4 * 768


def test_a_job_that_init_writes_has_paths_that_move_with_it(lancet):
    lancet.copy_model("both/model")
    (lancet.folder / "both" / "facts.json").write_text(json.dumps(own_facts(2)))
    (lancet.folder / "both" / "jobs").mkdir()
    arguments = ["init", "--model", "both/model", "--requests", "both/facts.json", "--out", "both/jobs/job.yaml"]
    made = lancet.run(*arguments)
    assert made.returncode == 0 and made.stdout == "" and "next: lancet edit both/jobs/job.yaml" in made.stderr, made.stderr
    job = yaml.safe_load((lancet.folder / "both" / "jobs" / "job.yaml").read_text())
    assert (job["model"], job["requests"]["path"], job["output"]["dir"]) == ("../model", "../facts.json", "edited")
    again = lancet.run(*arguments)
    assert again.returncode == CONFIG and "exists already" in again.stderr
    (lancet.folder / "both").rename(lancet.folder / "elsewhere")
    planned = lancet.run("plan", "elsewhere/jobs/job.yaml")
    assert planned.returncode == 0, planned.stderr


@pytest.mark.parametrize("make", [unknown_model, bare_model])
def test_a_model_with_a_chat_template_is_edited_and_asked_in_a_chat(lancet, make):
    """With a preset, or without one; without a template the job has nothing of it."""
    model = make(lancet)
    plain = yaml.safe_load(init(lancet, model).stdout)
    # published options are as they were published
    assert plain["editor"].get("entities") == (None if make is bare_model else {"weight": 1})
    assert plain["evaluate"] == ["efficacy", "paraphrase", "specificity", "generation", "subject"] and "contexts" not in plain["editor"]
    config = model / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat_template": LLAMA_2}))
    text = init(lancet, model).stdout
    job = yaml.safe_load(text)
    assert job["evaluate"] == [*plain["evaluate"], "chat"] and job["editor"]["contexts"]["chat"] == "model"
    result = lancet.run("edit", lancet.write(text, "job.yaml"), "--set", f"statistics.cache={lancet.cache}", "--set", "statistics.tokens=1600",
                        "--set", "editor.values.steps=2")  # fmt: skip
    assert result.returncode == 0, result.stderr
    report = json.loads((lancet.folder / "edited" / "report.json").read_text())
    assert any("[INST]" in context for context in report["contexts"]) and len(report["contexts"]) == 7
    assert "chat_contains" in report["metrics"]


def edit_in_one_line(lancet, model, *settings):
    fact = own_facts(1)[0]
    line = [word for key, value in fact.items() for word in (f"--{key}", value)]
    settings = ["statistics.tokens=1600", f"statistics.cache={lancet.cache}", "editor.values.steps=3", *settings]
    result = lancet.run("edit", "--model", model, *line, "--out", lancet.out,
                        *[word for setting in settings for word in ("--set", setting)])  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result


def test_one_line_says_what_it_chose(lancet):
    result = edit_in_one_line(lancet, unknown_model(lancet), "evaluate=[efficacy]")
    layers = [weight["name"].split(".")[2] for weight in json.loads((lancet.out / "report.json").read_text())["weights"]]
    # values at the last layer, whose residual is spread: a replay is asked for by name
    chosen = f"editor  memit with automatic options, layers [{', '.join(layers)}], values at [{layers[-1]}], other subjects in the statistics (entities): no published ones are known for this model"
    assert chosen in result.stderr, result.stderr
    assert "the model writes its own (statistics.corpus: self)" in result.stderr


def test_one_line_edits_a_chat_model_in_its_chat_too(lancet):
    """What the line does not choose is as `init` writes it; what it chooses is as it says."""
    model = unknown_model(lancet)
    config = model / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat_template": LLAMA_2}))
    result = edit_in_one_line(lancet, model)
    assert ", prompts also as user messages (contexts.chat), other subjects in the statistics (entities): no published" in result.stderr, result.stderr
    made, report = yaml.safe_load((lancet.out / "job.yaml").read_text()), json.loads((lancet.out / "report.json").read_text())
    asked = yaml.safe_load(init(lancet, model).stdout)
    assert asked["editor"]["contexts"] == {"chat": "model"} and any("[INST]" in text for text in report["contexts"])
    assert made["editor"]["entities"] == asked["editor"]["entities"] == {"weight": 1}
    assert asked["evaluate"][-1] == "chat" and "chat_contains" in report["metrics"] and "subject_kept" in report["metrics"]
    assert "paraphrase" not in result.stdout.split("metric, %")[1], "a row without prompts says nothing"
    plain = edit_in_one_line(lancet, model, "output.replace=true", "editor.contexts.generate=1", "editor.entities.weight=0")
    assert "no published" in plain.stderr and "user messages" not in plain.stderr and "other subjects" not in plain.stderr


def test_the_job_names_what_it_is_made_of(lancet):
    made = init(lancet, DATA / "demo-model", "--requests", FACTS, "--out", "some where")
    job = yaml.safe_load(made.stdout)
    assert job["requests"] == {"path": str(FACTS)} and job["output"]["dir"] == str(lancet.folder / "some where")
    assert "# 2000 in the format counterfact" in made.stdout and "put your facts" not in made.stderr
    assert f"# editor: as {DATA / 'demo-model' / 'lancet.yaml'} says" in made.stdout and "editor" not in job
    published = init(lancet, bare_model(lancet), "--json")
    text = json.loads(published.stdout)["yaml"]
    assert yaml.safe_load(text)["editor"] == {"method": "memit", "preset": "auto"} and "lancet presets demo-model-memit" in text
    planned = lancet.run("plan", lancet.write(text, "job.yaml"), "--devices", "80GiB")
    assert planned.returncode == 0, planned.stderr


@pytest.mark.parametrize(
    ("change", "parts"),
    [({"architectures": ["DiffLlamaForCausalLM"], "model_type": "diffllama"}, ["DiffLlamaForCausalLM", "LlamaForCausalLM"]), ({"vocab_size": 100}, ["100"])],
)
def test_a_model_that_cannot_be_edited_is_refused(lancet, change, parts):
    model = bare_model(lancet)
    change_config(model, **change)
    result = lancet.run("init", "--model", model)
    refuses(lancet, result, CHECKPOINT, *parts)
    assert result.stdout == ""
    assert lancet.run("inspect", model).stderr == result.stderr


def test_facts_that_cannot_be_read_are_refused(lancet):
    refuses(lancet, lancet.run("init", "--model", DATA / "demo-model", "--requests", "none.json"), CONFIG, "none.json")
