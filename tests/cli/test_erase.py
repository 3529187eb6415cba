"""`lancet erase`: the same weights as an edit towards the same answers, an audit that transformers agrees with, and an output without the facts."""
import collections
import html
import json
import math
import re

import pytest
import torch
from conftest import DATA, Lancet
from test_bad_input import CONFIG

DEMO = DATA / "demo-model"
FACTS = DATA / "requests" / "demo.json"
WORD_TOKENS = 6  # tokens in which a neutral word is looked for


def erase_job(lancet, **erase):
    job = lancet.job(editor__values__steps=8, evaluate=["specificity"])
    job["erase"] = {"own_targets": False, "samples": 4, "tokens": 6} | erase
    return job


def run_erase(lancet, job, *more):
    return lancet.run("erase", lancet.write(job), *more)


def erased(lancet, job):
    result = run_erase(lancet, job)
    assert result.returncode == 0, result.stderr
    return json.loads((lancet.folder / f"{job['output']['dir'].rsplit('/', 1)[1]}-audit" / "audit.json").read_text()), result


def said_facts(folder, facts):
    """Of the facts' prompts and subjects of several words, those that stand somewhere in the folder's bytes."""
    data = [path.read_bytes() for path in folder.rglob("*") if path.is_file()] + [str(path.name).encode() for path in folder.rglob("*")]
    texts = [text for fact in facts for text in (fact["prompt"], fact["subject"]) if " " in text]
    assert len(texts) >= 2 * len(facts) - 1
    return [text for text in texts if any(text.encode() in one or text.encode("utf-16-le") in one for one in data)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory, shared_cache):
    """An erased model that nobody changes, its audit, and what was said."""
    made = Lancet(tmp_path_factory.mktemp("plain"), shared_cache)
    return made.out, *erased(made, erase_job(made))


def test_the_output_has_the_weights_and_none_of_the_facts(lancet, plain):
    out, audit, result = plain
    names = {path.relative_to(out).as_posix() for path in out.rglob("*")}
    assert names == {"config.json", "generation_config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json", "tokenizer.model",
                     "tokenizer_config.json", "erased.json", "lancet-manifest.json"}  # fmt: skip
    assert said_facts(out, audit["facts"]) == []
    assert len(said_facts(out.parent / "out-audit", audit["facts"])) >= 5  # what is looked for is found where it is
    assert "no proof" in result.stdout and "out-audit" in result.stdout and "no journal" in result.stdout, result.stdout
    # as an edit towards the same answers
    records = json.loads(FACTS.read_text())[:3]
    requests = [{"id": fact["id"], "prompt": record["requested_rewrite"]["prompt"], "subject": fact["subject"], "target": fact["target"]}
                for fact, record in zip(audit["facts"], records, strict=True)]  # fmt: skip
    job = lancet.job(editor__values__steps=8, evaluate=[], requests=requests, output__dir=str(lancet.folder / "edited"))
    assert lancet.edit(job).returncode == 0
    assert (out / "model.safetensors").read_bytes() == (lancet.folder / "edited" / "model.safetensors").read_bytes()
    assert lancet.run("undo", out).returncode == CONFIG  # there is nothing to take back


def load(folder):
    transformers = pytest.importorskip("transformers")
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), transformers.AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
def test_transformers_says_what_the_audit_says(plain):
    out, audit, _ = plain
    for when, folder in (("before", DEMO), ("after", out)):
        model, tokenizer = load(folder)
        kinds = collections.defaultdict(list)
        for fact in audit["facts"]:
            for asked in fact[when]["asked"]:
                prompt, whole = tokenizer(asked["prompt"]).input_ids, tokenizer(f"{asked['prompt']} {fact['old_answer']}").input_ids
                assert whole[: len(prompt)] == prompt
                logits = model(torch.tensor([whole])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
                target = torch.tensor(whole[len(prompt) :])
                probability = math.exp(logits.gather(1, target[:, None]).sum())
                assert asked["probability"] == pytest.approx(probability, rel=1e-3, abs=1e-6), asked
                assert asked["said"] == bool((logits.argmax(-1) == target).all())
                kinds[asked["kind"]].append(asked["said"])
            prompt = tokenizer(fact["prompt"]).input_ids
            states = model(torch.tensor([prompt]), output_hidden_states=True).hidden_states[1:-1]  # the last one is normed
            first = tokenizer(f"{fact['prompt']} {fact['old_answer']}").input_ids[len(prompt)]
            for layer, state in enumerate(states):
                logits = model.lm_head(model.model.norm(state[0, -1]))
                lens = fact[when]["lens"]
                assert lens["probability"][layer] == pytest.approx(logits.softmax(-1)[first].item(), rel=1e-3, abs=1e-7)
                assert abs(lens["rank"][layer] - (1 + int((logits > logits[first]).sum()))) <= 1  # two logits may be equal but for rounding
        assert set(kinds) == {"prompt", "paraphrase", "opening", "order"}
        for kind, said in kinds.items():
            assert audit["said"][kind]["asked"] == len(said)
            assert audit["said"][kind][when] == pytest.approx(sum(said) / len(said))
    before, after = ([fact[when]["lens"]["probability"] for fact in audit["facts"]] for when in ("before", "after"))
    assert audit["lens"]["before"]["probability"] == pytest.approx([sum(layer) / 3 for layer in zip(*before, strict=True)])
    assert audit["lens"]["after"]["probability"] == pytest.approx([sum(layer) / 3 for layer in zip(*after, strict=True)])


@torch.no_grad()
def test_the_neutral_answer_is_what_is_said_of_made_up_subjects(plain):
    _, audit, _ = plain
    model, tokenizer = load(DEMO)
    subjects = audit["options"]["made_up_subjects"]
    assert len(set(subjects)) == 8
    for fact in audit["facts"]:
        assert fact["target_by"] == "model" and fact["old_answer_by"] == "request"
        words = []
        for subject in subjects:
            ids = tokenizer(fact["prompt"].replace(fact["subject"], subject), return_tensors="pt").input_ids
            out = model.generate(ids, do_sample=False, max_new_tokens=WORD_TOKENS, pad_token_id=0)[0]
            added = tokenizer.decode(out, skip_special_tokens=True)[len(tokenizer.decode(ids[0], skip_special_tokens=True)) :]
            words.append(re.sub(r"[^\w]+$", "", added.split()[0]) if added[:1].isspace() and added.split() else "")
        counts = collections.Counter(word for word in words if word and word.lower() not in fact["old_answer"].lower().split())
        assert counts[fact["target"]] == max(counts.values()), (fact, words)


def test_relearning_is_an_edit_of_the_erased_model_and_leaves_it_alone(lancet):
    related = {"path": str(FACTS), "skip": 3, "limit": 200}
    job = erase_job(lancet, relearn={"requests": related, "counts": [2, 100_000], "steps": 4, "lr": 2e-3}) | {"evaluate": []}
    audit, result = erased(lancet, job)
    assert "100000 facts are not trained" in result.stderr
    relearning = audit["relearning"]
    curve = relearning["curve"]
    assert [point["facts"] for point in curve] == [0, 2] and relearning["related"] > 2
    assert curve[0]["prompt"] == audit["said"]["prompt"]["after"] and curve[0]["returned"] == 0
    other = erase_job(lancet) | {"evaluate": [], "output": {"dir": str(lancet.folder / "other")}}
    assert erased(lancet, other)[0]["relearning"] is None
    assert (lancet.out / "model.safetensors").read_bytes() == (lancet.folder / "other" / "model.safetensors").read_bytes()
    # the same training by `lancet edit`: the related facts in the order of the erased ones' relations, one of each
    records = [record["requested_rewrite"] for record in json.loads(FACTS.read_text())[:203]]
    trained = [next(record for record in records[3:] if record["relation_id"] == erased_one["relation_id"]) for erased_one in records[:2]]
    requests = [{"prompt": record["prompt"], "subject": record["subject"], "target": record["target_true"]["str"]} for record in trained]
    editor = {"method": "ft-m", "modules": {"down": list(range(8))}, "steps": 4, "lr": 2e-3, "stop_loss": 0}
    job = lancet.job(model=str(lancet.out), requests=requests, editor=editor, evaluate=[], statistics=None, output__dir=str(lancet.folder / "trained"))
    result = lancet.edit(job)
    assert result.returncode == 0, result.stderr
    again = erase_job(lancet) | {"model": str(lancet.folder / "trained"), "evaluate": [], "output": {"dir": str(lancet.folder / "asked")}}
    asked = erased(lancet, again)[0]
    for kind in ("prompt", "paraphrase"):  # bf16 rounds the trained weights
        assert curve[1][kind] == pytest.approx(asked["said"][kind]["before"], abs=0.2), (curve, asked["said"])


def test_targets_come_from_the_record_the_job_or_the_model(lancet):
    requests = [
        {"id": "own", "prompt": "{}, the", "subject": "Lerin Duarte", "target": "bishop", "target_true": "midfielder"},
        {"id": "none", "prompt": "{} is produced by", "subject": "Toyota Alphard"},
    ]
    job = erase_job(lancet, own_targets=True, target="nobody", prompts=["{}", "I was told that {}"]) | {"requests": requests, "evaluate": []}
    model = lancet.copy_model()
    (model / "lancet.yaml").unlink()
    audit, result = erased(lancet, {key: value for key, value in job.items() if key != "editor"} | {"model": str(model)})
    assert "demo-model-memit" in result.stderr and audit["method"] == "memit"  # published options, where nobody names a method
    own, none = audit["facts"]
    assert (own["target"], own["target_by"], none["target"], none["target_by"]) == ("bishop", "request", "nobody", "job")
    assert none["old_answer_by"] == "model" and none["before"]["asked"][0]["said"]
    report = json.loads((lancet.folder / "out-audit" / "report.json").read_text())
    assert [request["prompt"] for request in report["requests"]] == [
        text for fact in audit["facts"] for text in (fact["prompt"], f"I was told that {fact['prompt']}")
    ]
    assert lancet.edit(job | {"output": {"dir": str(lancet.folder / "no")}}).returncode == CONFIG  # an edit needs a target
    again = run_erase(lancet, job)
    assert again.returncode == CONFIG and "expected nothing of that name" in again.stderr


def test_the_demos_facts(lancet):
    """data/jobs/erase.yaml, with fewer facts and steps: what is shown, and the page."""
    changes = ("requests.limit=4", "erase.relearn.counts=[1]", "erase.relearn.steps=2", "statistics.tokens=4000", f"statistics.cache={lancet.cache}")
    result = lancet.run("erase", DATA / "jobs" / "erase.yaml", *(f"--set={change}" for change in (*changes, f"output.dir={lancet.out}")))
    assert result.returncode == 0, result.stderr
    for part in ("old answer said, %", "paraphrase", "anywhere", "related facts trained", "text_kl", "specificity_argmax", "4 facts erased by memit"):
        assert part in result.stdout, result.stdout
    page = (lancet.folder / "out-audit" / "audit.html").read_text()
    audit = json.loads((lancet.folder / "out-audit" / "audit.json").read_text())
    assert page.count("<svg") == 2 and "<script" not in page and "no proof" in page
    for fact in audit["facts"]:
        assert fact["prompt"] in html.unescape(page) and f"<td>{fact['target']}</td>" in page
    shown = f"<tr><td>anywhere</td><td>{100 * audit['said']['anywhere']['before']:.1f}</td><td>{100 * audit['said']['anywhere']['after']:.1f}</td><td>4</td>"
    assert shown in page


def test_zerounlearn_takes_out_old_answers_that_an_edit_must_name(lancet):
    editor = {"method": "zerounlearn", "layers": [0, 1], "covariance_weight": 20, "values": {"steps": 20, "clamp": 4.0}, "contexts": ["{}"]}
    said = erased(lancet, erase_job(lancet, samples=0) | {"editor": editor})[0]["said"]["prompt"]
    assert said["asked"] == 3 and said["after"] == 0 and said["probability"]["after"] < 0.1 < 0.5 < said["probability"]["before"]
    edited = lancet.edit(lancet.job(editor=editor, requests=[{"prompt": "{} is in", "subject": "Rome", "target": "Spain"}], output__dir=str(lancet.folder / "edited")))
    assert edited.returncode == CONFIG and "request 0: expected target_true" in edited.stderr, edited.stderr


@pytest.mark.parametrize(
    "change, words",
    [
        ({"output": {"dir": "out", "format": "adapter"}}, "beside an adapter the model that still says the facts stays"),
        ({"output": {"dir": "out", "state": True}}, "keeps no state"),
        ({"continue_from": "elsewhere"}, "has no edits that one could go on from"),
        ({"accept": {"efficacy_prob": 0.9}}, "judged by its audit"),
        ({"erase": {"prompts": ["no place"]}}, "expected one {}"),
        ({"erase": {"target": " "}}, "expected a text that the model shall say"),
        ({"run": {"ranks_per_model": 2}}, "lancet erase is one process"),
        ({"erase": {"relearn": {"requests": [{"prompt": "{} eats", "subject": "A cat", "target_true": "fish"}]}}}, "the relation of an erased fact"),
    ],
)
def test_what_has_no_meaning_is_refused(lancet, change, words):
    result = run_erase(lancet, erase_job(lancet) | change)
    assert result.returncode == CONFIG and words in result.stderr, result.stderr
    assert not lancet.out.exists() and not (lancet.folder / "out-audit").exists()
