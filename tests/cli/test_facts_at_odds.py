"""A fact that is edited again to another target, is there twice, or contradicts another: said, and seen in the log."""
import json

FACT = {"prompt": "{}, created in", "subject": "Piranha Games"}
ROME, LONDON, BERLIN = ({**FACT, "id": id, "target": target} for id, target in (("5", "Rome"), ("1", "London"), ("2", "Berlin")))
QUICK = {"run__dtype": "f32", "editor__values": {"steps": 12, "lr": 0.5, "clamp": 4.0}, "evaluate": ["efficacy"]}


def log_of(lancet, folder):
    log = json.loads(lancet.run("log", folder, "--json").stdout)
    return [edit for batch in log["batches"] for edit in batch["edits"]]


def test_a_replaced_edit_is_told_and_measured_again(lancet):
    job = lancet.job(**QUICK, requests=[LONDON], output={"dir": str(lancet.folder / "first")})
    assert lancet.edit(job).returncode == 0
    assert [(edit["success"], edit["replaced_by"]) for edit in log_of(lancet, lancet.folder / "first")] == [(True, None)]
    later = {**QUICK, "evaluate": {"metrics": ["efficacy"], "standing": True}, "continue_from": str(lancet.folder / "first")}
    result = lancet.edit(lancet.job(**later, requests=[ROME]))
    assert result.returncode == 0, result.stderr
    said = "contradiction with 1 edit that stands, which it replaces: request 5 and edit 1: 'Rome' and 'London' after 'Piranha Games, created in'"
    assert said in result.stderr and "0 of 1 earlier edit still hold" in result.stdout
    report = json.loads((lancet.out / "report.json").read_text())
    assert said in report["warnings"] and [(edit["id"], edit["success"]) for edit in report["standing"]["edits"]] == [("1", False)]
    first, second = log_of(lancet, lancet.out)
    assert (first["success"], first["replaced_by"], first["why"]) == (False, "5", "edit 5 replaced it")
    assert first["before"]["efficacy_argmax"] == 0 and first["after"]["efficacy_argmax"] == 0
    assert (second["success"], second["replaced_by"]) == (True, None)
    table = lancet.run("log", lancet.out).stdout
    assert "replaced by 5" in table


def test_facts_of_a_job_that_contradict_or_repeat_each_other_are_told(lancet):
    again = {**LONDON, "id": "7", "paraphrases": ["Piranha Games was founded in"]}
    result = lancet.edit(lancet.job(**{**QUICK, "evaluate": ["efficacy", "paraphrase"]}, requests=[LONDON, again, BERLIN]))
    assert result.returncode == 0, result.stderr
    assert "contradiction: one fact has one target, and not both of requests 1 and 2: 'London' and 'Berlin'" in result.stderr
    assert "each pulls it to its own value" not in result.stderr
    assert "1 request says what an earlier one does, and a fact is edited once: 7 (as 1)" in result.stderr
    report = json.loads((lancet.out / "report.json").read_text())
    assert [request["id"] for request in report["requests"]] == ["1", "2"]
    assert report["metrics"]["paraphrase_argmax"]["prompts"] == 1
    assert report["warnings"][0].startswith("1 request says what an earlier one does")
