"""`lancet schema`: Python's jsonschema and the program say the same of every job here; docs/options.md is what the program prints."""
import copy
import json
import re
import subprocess

import jsonschema
import pytest
import yaml
from conftest import DATA, LANCET, ROOT, SMALL_JOB

CONFIG = 2


class Yaml12(yaml.SafeLoader):
    """Booleans and numbers as YAML 1.2 and lancet have them: `off` is a word, 1e-3 a number."""


Yaml12.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^-?(?:0|[1-9][0-9]*)$", "-0123456789"),
    ("float", r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$", "-0123456789."),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
]:
    Yaml12.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


def load(text):
    return yaml.load(text, Yaml12)


def printed(*arguments):
    done = subprocess.run([str(LANCET), "schema", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def schema():
    made = json.loads(printed())
    jsonschema.Draft202012Validator.check_schema(made)
    return made


@pytest.fixture(scope="module")
def validator(schema):
    return jsonschema.Draft202012Validator(schema)


def places(validator, job):
    """Dotted places of what the schema refuses; of an unknown key its own, of alternatives those within too."""
    found = set()

    def add(error):
        place = [str(part) for part in error.absolute_path]
        found.add(".".join(place))
        if error.validator in ("additionalProperties", "propertyNames", "dependentRequired"):
            found.update(".".join([*place, key]) for key in re.findall(r"'([^']+)'", error.message))
        if error.validator == "required":
            found.update(".".join([*place, key]) for key in error.validator_value)
        for inner in error.context or []:
            add(inner)

    for error in validator.iter_errors(job):
        add(error)
    return found


def changed(job, dotted, value):
    job = copy.deepcopy(job)
    *parents, key = dotted.split(".")
    place = job
    for parent in parents:
        place = place.setdefault(parent, {})
    place[key] = value
    return job


BASE = SMALL_JOB | {"output": {"dir": "out"}}


def of_method(method, **options):
    return BASE | {"editor": {"method": method, **options}}


# ---- the page ----


def test_the_page_is_what_the_program_prints():
    page = (ROOT / "docs" / "options.md").read_text()
    assert page == printed("--reference"), "lancet schema --reference > docs/options.md"


# ---- jobs that are good ----


def jobs_of_the_documents():
    for page in sorted((ROOT / "docs").glob("*.md")):
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.M | re.S):
            job = load(block)
            if isinstance(job, dict) and "model" in job:
                yield page.name, job


def test_jobs_of_the_repository_are_accepted(validator):
    jobs = [(path.name, load(path.read_text())) for path in sorted((DATA / "jobs").glob("*.yaml"))]
    jobs += jobs_of_the_documents()
    assert len(jobs) >= 6
    for name, job in jobs:
        assert places(validator, job) == set(), name


def test_presets_are_editors(schema):
    editor = jsonschema.Draft202012Validator(schema | {"$ref": "#/$defs/editor", "type": "object", "properties": {}, "required": [],
                                                       "additionalProperties": True})  # fmt: skip
    presets = sorted((DATA / "presets").glob("*.yaml"))
    assert presets
    for path in presets:
        assert places(editor, load(path.read_text())["editor"]) == set(), path.name


def test_the_template_of_init_is_accepted(validator):
    made = subprocess.run([str(LANCET), "init", "--model", str(DATA / "demo-model")], capture_output=True, text=True, timeout=60)
    assert made.returncode == 0, made.stderr
    assert places(validator, load(made.stdout)) == set()


LAYERED = {"values": {"steps": 3}, "contexts": {"generate": 2, "length": 6}, "equal_keys": "split", "compat": "easyedit",
           "norm_anchor": {"mode": "off", "limit": 3}, "layers": [0, 1]}  # fmt: skip
GOOD = {
    "memit": of_method("memit", covariance_weight={"realised_share": 0.9}, identity_weight=0, history=True, blue=True, **LAYERED),
    "automatic": of_method("memit", layers="auto", covariance_weight="auto", values=None, rect=None),
    "rome": of_method("rome", **(LAYERED | {"layers": [1]}), covariance=False),
    "r-rome": of_method("r-rome", **(LAYERED | {"layers": [1]}), keys="original"),
    "emmet": of_method("emmet", targets="replay", covariance_weight=20, slack=0.5, identity_weight=1, rect={"keep": 0.3}, **LAYERED),
    "alphaedit": of_method("alphaedit", null_space_below={"share": 0.5}, ridge="auto", prune={}, **LAYERED),
    "pmet": of_method("pmet", covariance_weight=20, **(LAYERED | {"values": {"nll_factor": 2}})),
    "nse": of_method("nse", passes=3, residual_above=0, residual_below="auto", neurons=0.5, history=False, **LAYERED),
    "evoedit": of_method("evoedit", null_space_below=0.5, ridge="auto", blue=True, **LAYERED),
    "betaedit": of_method("betaedit", null_space_below="auto", covariance_weight=3000, ridge=10, refresh=5, revive={"energy": 0.2}, **LAYERED),
    "fed back": of_method("memit", history=True, rect={}, error_feedback=True, target_end="auto", **LAYERED),
    "ultraedit": of_method("ultraedit", target_end="none", modules={"gate": [1], "up": [1]}, lr=1e-3, batch=2, tokens="all"),
    "stableedit": of_method("stableedit", modules={"down": [1]}, lr=1e-3, batch=2, tokens="all", ridge=10, warm_up=20),
    "text budget": of_method("memit", text_budget=0.01),
    "repaired": of_method("nse", repair=dict(revisit=5, margin=1, steps=3, lr=1e-2, batch=2, whiten=0.1)),
    "repaired in the null space": of_method("alphaedit", repair={}),
    "chunks": of_method("memit", values={"chunk_tokens": 40, "kl": 0}),
    "zerounlearn": of_method("zerounlearn", layers=[1], covariance_weight=20, identity_weight=0.1),
    "ft": of_method("ft", modules="auto", lr=1e-3, steps=2, weight_decay=0, batch=1, stop_loss=0),
    "ft-l": of_method("ft-l", norm_constraint=0.1),
    "ft-m": of_method("ft-m", norm_constraint=None, order="breadth-first", target_end="eos", batch=3, revisit=4, margin=0, whiten=0.01),
    "crispedit": of_method("crispedit", modules={"down": [4]}, energy=0.9, projected="steps", neighbours=2, neighbour_weight=3, order="given", margin=0.5),
    "contexts in place": changed(BASE, "editor.contexts", ["{}", "So it is. {}"]),
    "records": BASE | {"requests": [{"prompt": "{} is in", "subject": "Rome", "target": 1998, "target_true": "Italy", "id": 7,
                                     "paraphrases": ["{} lies in"], "locality": {"a": [{"prompt": "x", "answers": ["y"]}]}}]},
    "a format by name": changed(BASE, "requests.format", "counterfact"),
    "nothing is measured": BASE | {"evaluate": []},
    "accept": BASE | {"evaluate": ["efficacy", "easyedit"], "accept": {"efficacy_prob": 0.5, "easyedit_locality_nq": 0}},
    "evaluate with options": BASE | {"evaluate": {"metrics": ["efficacy", "mquake", "belief"], "tokens": 3, "belief": {"orders": "all"}, "target_end": "eos", "distractor": "So. ", "chat_template": "{}",
                                                  "side_effects": {"text": str(DATA / "requests" / "demo-corpus.txt"), "tokens": 2000},
                                                  "mquake": {"examples": str(DATA / "requests" / "demo-corpus.txt")}}},
    "evaluate by others": BASE | {"evaluate": {"metrics": ["mirage", "judge", "long_form"], "chat_template": "{}", "belief": {"orders": "all"},
                                               "side_effects": {"text": str(DATA / "requests" / "demo-corpus.txt")}, "long_form": {"tokens": 9, "chat": True},
                                               "judge": {"url": "http://127.0.0.1:1/v1", "model": "m", "tokens": 3, "remote": False, "seconds": 2}}},
    "judged by a program": BASE | {"evaluate": {"metrics": ["judge"], "judge": {"command": ["true", 1]}}},
    "schedule": BASE | {"schedule": {"batch": 2, "order": "shuffled", "measure_every": 0, "save_every": 2}},
    "drift alarm": BASE | {"evaluate": {"metrics": ["efficacy"], "side_effects": {"text": str(DATA / "requests" / "demo-corpus.txt")}},
                           "schedule": {"batch": 2, "drift_alarm": {"text_kl": 0.1, "action": "warn"}}},
    "tune": BASE | {"tune": {"requests": {"path": "x.json", "limit": 3}, "search": {"values.lr": [0.1]}, "trials": 2, "halve": 3,
                             "objective": ["efficacy_prob"]}},
    "erase": BASE | {"erase": {"target": "unknown", "own_targets": False, "prompts": ["I know {}"], "samples": 0, "temperature": 0.5, "tokens": 3,
                               "relearn": {"requests": {"path": "x.json"}, "counts": "auto", "steps": 1, "lr": 0.1}}},
    "tune by the job's requests": BASE | {"tune": {"trials": 4}},
    "compare": BASE | {"compare": {"a": {"method": "memit"}, "b+1": {"method": "ft", "lr": 0.1}}},
    "own text": BASE | {"statistics": {"corpus": "self", "tokens": "auto", "document_tokens": 64, "ridge": 1e-9, "save_every_s": 0}},
    "run": BASE | {"run": {"devices": ["cpu"], "balance": "work", "dtype": "f32", "seed": 1, "threads": 1, "timeout_s": 5}},
    "null is absent": BASE | {"statistics": None, "schedule": None, "accept": None, "continue_from": None, "tune": None, "run": {"seed": None}},
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_good_jobs_are_accepted_by_both(lancet, validator, name):
    assert places(validator, GOOD[name]) == set()
    planned = lancet.run("plan", lancet.write(GOOD[name]), "--devices", "80GiB")
    assert planned.returncode != CONFIG or "x.json" in planned.stderr, planned.stderr


def test_jobs_of_these_tests_are_accepted(lancet, validator):
    assert places(validator, lancet.job()) == set()


# ---- jobs that are bad ----

BAD = [
    ("ouput", {"dir": "x"}),
    ("editor.covariance_wieght", 3),
    ("editor.method", "memmit"),
    ("editor.slack", 0.1),
    ("editor.null_space_below", "auto"),
    ("editor.modules", {"down": [1]}),
    ("editor.layers", []),
    ("editor.layers", "all"),
    ("editor.layers", [0, -1]),
    ("editor.layers", [1, 1]),
    ("editor.covariance_weight", "automatic"),
    ("editor.covariance_weight", {"realised_share": 1}),
    ("editor.covariance_weight", {"share": 0.5}),
    ("editor.values", [1]),
    ("editor.values.steps", 0),
    ("editor.values.steps", "many"),
    ("editor.values.steps", 2.5),
    ("editor.values.lr", 0),
    ("editor.values.lr", "0.5"),
    ("editor.values.nll_factor", 1),
    ("editor.contexts", ["So. {}"]),
    ("editor.contexts", ["{}", "So."]),
    ("editor.contexts", {"generate": -1}),
    ("editor.equal_keys", "ignore"),
    ("editor.history", "yes"),
    ("editor.norm_anchor.mode", "on"),
    ("editor.rect.keep", 1.5),
    ("editor.prune.log_base", 1),
    ("statistics.token", 3),
    ("statistics.tokens", 0),
    ("statistics.import", "moments.npz"),
    ("statistics.ridge", -1),
    ("schedule.batch", -1),
    ("schedule.order", "random"),
    ("schedule.save_every", 0),
    ("requests.limit", 0),
    ("requests.format", "csv"),
    ("requests.on_bad_record", "ignore"),
    ("requests", []),
    ("evaluate", ["eficacy"]),
    ("evaluate", ["efficacy", "efficacy"]),
    ("evaluate", {"metrics": ["efficacy"], "tokens": 0}),
    ("evaluate", {"metrics": ["efficacy"], "judge": {"command": ["true"]}}),
    ("evaluate", {"metrics": ["judge"], "judge": {"command": ["true"], "url": "http://127.0.0.1:1"}}),
    ("evaluate", {"metrics": ["judge"], "judge": {"command": ["true"], "model": "m"}}),
    ("evaluate", {"metrics": ["long_form"], "long_form": {"tokens": 0}}),
    ("accept", {"efficacy_prob": 1.5}),
    ("accept", {"eficacy_prob": 0.5}),
    ("accept", {"counterfact_ge": 0.5}),
    ("output.replace", "maybe"),
    ("output.folder", "x"),
    ("tune", {"trials": 1}),
    ("tune", {"requests": {"path": "x"}, "trials": 1}),
    ("tune", {"requests": {"path": "x"}, "search": {"values.lr": 0.1}}),
    ("tune", {"requests": {"path": "x"}, "objective": ["efficacy"]}),
    ("erase", {"samples": -1}),
    ("erase", {"relearn": {"requests": {"path": "x"}, "counts": [0]}}),
    ("compare", {}),
    ("compare", {"a": {"method": "ft", "layers": [1]}}),
    ("compare", {"a b": {"method": "memit"}}),
    ("run.dtype", "f23"),
    ("run.dtpe", "f32"),
    ("run.threads", 5000),
    ("run.seed", -1),
    ("run.timeout_s", 0),
    ("model", None),
]  # fmt: skip
# The same with other words for the place: the schema says it of the section or of the key beside it.
BESIDE = [
    (BASE | {"statistics": {"import": "m{}.npz", "tokens": 3}}, "statistics.tokens"),
    (BASE | {"statistics": {"import_null_space": "p.pt", "ridge": 1}}, "statistics.ridge"),
    (BASE | {"evaluate": {"metrics": ["zsre"], "counterfact": {"snippets": "s.json"}}}, "evaluate"),
    (BASE | {"evaluate": {"metrics": ["counterfact"], "counterfact": {"snippets": "s", "idf": "i"}}}, "evaluate.counterfact"),
    (BASE | {"evaluate": {"metrics": ["counterfact"], "counterfact": {"idf": "i", "vocabulary": "v"}}}, "evaluate.counterfact"),
    (BASE | {"evaluate": {"metrics": [], "side_effects": {"tokens": 5}}}, "evaluate.side_effects"),
    (BASE | {"editor": {"layers": [1]}}, "editor"),
    (BASE | {"editor": {"method": None}}, "editor"),
    (BASE | {"requests": [{"prompt": "{} is", "subject": "x", "target": "y", "colour": "z"}]}, "requests"),
    (BASE | {"requests": [{"prompt": "{} is", "subject": "x"}]}, "requests"),
    (BASE | {"output": {"replace": True}}, "output.dir"),
]  # fmt: skip


def program_refuses(lancet, job, place):
    planned = lancet.run("plan", lancet.write(job), "--devices", "80GiB")
    return planned.returncode == CONFIG and place in planned.stderr, planned.stderr


@pytest.mark.parametrize(("place", "value"), BAD, ids=lambda part: json.dumps(part)[:40])
def test_bad_jobs_are_refused_by_both_at_their_place(lancet, validator, place, value):
    job = changed(BASE, place, value)
    assert any(found == place or found.startswith(place + ".") for found in places(validator, job)), places(validator, job)
    refused, text = program_refuses(lancet, job, place)
    assert refused, text


@pytest.mark.parametrize(("job", "place"), BESIDE, ids=[place for _, place in BESIDE])
def test_what_does_not_go_together_is_refused_by_both(lancet, validator, job, place):
    assert any(found.startswith(place) for found in places(validator, job)), places(validator, job)
    refused, text = program_refuses(lancet, job, place)
    assert refused, text


# ---- every option of every method, by what the schema itself says ----


def resolved(schema, part):
    while "$ref" in part:
        part = schema["$defs"][part["$ref"].removeprefix("#/$defs/")]
    return part


def wrong_values(schema, keys, place):
    """{dotted key: a value that the schema refuses}, of each that takes no text; for what is a section its keys'."""
    wrong = {}
    for key, part in keys.items():
        part = resolved(schema, part)
        forms = [part, *part.get("anyOf", [])]
        numbers = [form for form in forms if set(form.get("type", []) if isinstance(form.get("type"), list) else [form.get("type")]) & {"integer", "number"}
                   and "string" not in form.get("type", [])]  # fmt: skip
        sections = [form for form in forms if "properties" in form and not form.get("properties", {}).keys() & {"realised_share", "share"}]
        if sections:
            wrong |= wrong_values(schema, sections[0]["properties"], f"{place}.{key}")
        elif numbers and "minimum" in numbers[0]:
            wrong[f"{place}.{key}"] = numbers[0]["minimum"] - 1
        elif "string" not in json.dumps(part.get("type", "")):
            wrong[f"{place}.{key}"] = "no such thing"
    return wrong


@pytest.mark.parametrize("method", ["memit", "rome", "r-rome", "emmet", "alphaedit", "pmet", "nse", "evoedit", "betaedit", "ultraedit", "stableedit", "ft", "ft-l", "ft-m", "zerounlearn", "crispedit"])
def test_a_wrong_value_of_every_option_is_told_by_both(lancet, schema, validator, method):
    keys = {key: part for key, part in schema["$defs"][f"editor-{method}"]["properties"].items() if key not in ("method", "preset")}
    wrong = wrong_values(schema, keys, "editor")
    assert len(wrong) >= 8
    job = of_method(method)
    for place, value in wrong.items():
        job = changed(job, place, value)
    found = places(validator, job)
    assert [place for place in wrong if place not in found] == []
    planned = lancet.run("plan", lancet.write(job), "--devices", "80GiB")
    assert planned.returncode == CONFIG
    assert [place for place in wrong if f"{place}: " not in planned.stderr] == [], planned.stderr


def test_every_option_of_every_method_is_accepted_by_the_program(lancet, schema, validator):
    """Options of one method beside another one's are refused by both; a method's own defaults are taken by both."""
    for method in ["memit", "rome", "r-rome", "emmet", "alphaedit", "pmet", "nse", "evoedit", "betaedit", "ultraedit", "stableedit", "ft", "ft-l", "ft-m", "zerounlearn", "crispedit"]:
        job = of_method(method)
        for key, part in schema["$defs"][f"editor-{method}"]["properties"].items():
            if "default" in resolved(schema, part):
                job["editor"][key] = resolved(schema, part)["default"]
        assert places(validator, job) == set(), method
        planned = lancet.run("plan", lancet.write(job), "--devices", "80GiB")
        assert planned.returncode != CONFIG, (method, planned.stderr)
