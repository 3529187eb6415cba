"""Request files in the shapes of public data sets, through whole commands."""
import json

import pytest
import yaml
from conftest import DATA, run_ok


@pytest.fixture(scope="module")
def facts():
    records = json.loads((DATA / "requests" / "demo.json").read_text())[:4]
    return [record | record["requested_rewrite"] for record in records]


def zsre(fact, other):
    return {
        "subject": fact["subject"], "src": fact["prompt"].format(fact["subject"]), "rephrase": fact["paraphrase_prompts"][0],
        "alt": fact["target_new"]["str"], "answers": [fact["target_true"]["str"]], "loc": "nq question: who is it",
        "loc_ans": other["target_true"]["str"],
    }  # fmt: skip


def knowedit(fact, other):
    truth = [[other["target_true"]["str"]]]
    return {
        "subject": fact["subject"], "prompt": fact["prompt"].format(fact["subject"]), "target_new": fact["target_new"]["str"],
        "ground_truth": [fact["target_true"]["str"]], "rephrase_prompt": fact["paraphrase_prompts"][0],
        "locality": {"Relation_Specificity": [{"prompt": other["prompt"].format(other["subject"]), "ground_truth": truth}]},
        "portability": {"Reasoning": [{"prompt": fact["paraphrase_prompts"][0], "ground_truth": fact["target_new"]["str"]}]},
    }  # fmt: skip


@pytest.mark.parametrize(("shape", "name"), [(zsre, "zsre"), (knowedit, "flat")])
def test_edit_takes_the_shape_of_a_data_set(lancet, facts, shape, name):
    records = [shape(facts[i], facts[3]) for i in range(3)]
    path = lancet.folder / "data.json"
    path.write_text(json.dumps(records))
    run_ok(lancet.edit(lancet.job(requests={"path": str(path)}, evaluate=["efficacy", "paraphrase"])))
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["metrics"]["efficacy_prob"]["prompts"] == report["metrics"]["paraphrase_prob"]["prompts"] == 3
    assert report["metrics"]["efficacy_prob"]["before"] < 0.5 < report["metrics"]["efficacy_prob"]["after"]
    assert report["skipped_records"] == {"count": 0, "messages": []}
    assert yaml.safe_load((lancet.out / "job.yaml").read_text())["requests"]["format"] == name
    written = [json.loads(line) for line in (lancet.out / "requests.jsonl").read_text().splitlines()]
    assert [r["target"] for r in written] == [fact["target_new"]["str"] for fact in facts[:3]]
    section = "nq" if shape is zsre else "Relation_Specificity"
    assert all(r["locality"][section][0]["answers"] == [facts[3]["target_true"]["str"]] for r in written)


def test_bad_records_are_skipped_when_asked_for(lancet, facts):
    records = [zsre(facts[0], facts[3]), zsre(facts[1], facts[3]) | {"alt": ""}, zsre(facts[2], facts[3])]
    path = lancet.folder / "data.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    problem = f"{path}: record 1 (line 2): alt: is empty"
    job = lancet.job(requests={"path": str(path)}, evaluate=[], editor__values__steps=2)
    refused = lancet.edit(job)
    assert refused.returncode == 2 and problem in refused.stderr
    result = run_ok(lancet.edit(job, "--set", "requests.on_bad_record=skip"))
    assert f"requests: 1 record(s) left out:\n{problem}" in result.stderr
    report = json.loads((lancet.out / "report.json").read_text())
    assert report["skipped_records"] == {"count": 1, "messages": [problem]}
    assert [request["id"] for request in report["requests"]] == ["0", "2"]


def test_a_format_is_taken_by_name(lancet, facts):
    path = lancet.folder / "data.json"
    path.write_text(json.dumps([zsre(facts[0], facts[3])]))
    job = lancet.job(requests={"path": str(path), "format": "zsre-true"}, evaluate=["efficacy"], editor=None, statistics=None, output=None)
    result = run_ok(lancet.run("eval", lancet.write(job), "--json"))
    assert json.loads(result.stdout)["metrics"]["efficacy_argmax"]["value"] == 1
    unknown = lancet.run("eval", lancet.write(job), "--set", "requests.format=zsree")
    assert unknown.returncode == 2 and "requests.format" in unknown.stderr and "zsre" in unknown.stderr


@pytest.mark.parametrize("method", ["memit", "ultraedit"])
def test_only_methods_that_need_a_subject_ask_for_one(lancet, facts, method):
    path = lancet.folder / "data.csv"
    path.write_text(f"prompt,ans\n\"{facts[0]['prompt'].format(facts[0]['subject'])}\",{facts[0]['target_new']['str']}\n")
    editor = {"method": "ultraedit", "modules": {"down": [3]}, "lr": 1e-3}
    changes = {"editor": editor, "statistics": None} if method == "ultraedit" else {}
    result = lancet.edit(lancet.job(requests={"path": str(path)}, evaluate=[], **changes))
    if method == "memit":
        assert result.returncode == 2 and "request 0: no subject" in result.stderr
    else:
        run_ok(result)
