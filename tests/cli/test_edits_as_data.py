"""`lancet log`, `apply` and `undo`: edits listed, added again and taken back, byte by byte, in processes of their own."""
import json
import re
import shutil

import pytest
from conftest import DATA, run_ok
from safetensors.torch import load_file

STREAM = {"requests__limit": 6, "schedule": {"batch": 2}, "run__threads": 1, "evaluate": ["efficacy", "paraphrase", "specificity"],
          "editor__values": {"steps": 12, "lr": 0.5, "clamp": 4.0}}  # fmt: skip
IDS = [str(record["case_id"]) for record in json.loads((DATA / "requests" / "demo.json").read_text())[:6]]


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def entries(folder):
    return [json.loads(line)["entry"] for line in (folder / "edits" / "journal.jsonl").read_text().splitlines()]


def lines(folder):
    """Without the end, which counts them."""
    return (folder / "edits" / "journal.jsonl").read_text().splitlines()[:-1]


def log_of(lancet, folder, *arguments):
    return json.loads(run_ok(lancet.run("log", folder, "--json", *arguments)).stdout)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Outputs that tests only read: of six edits in three batches, and of the first four of them."""
    from conftest import Lancet

    lancet = Lancet(tmp_path_factory.mktemp("made"))
    for dtype in ("f32", "bf16"):
        for limit in (6, 4):
            job = lancet.job(**{**STREAM, "requests__limit": limit}, run__dtype=dtype, output={"dir": str(lancet.folder / f"{dtype}-{limit}")})
            run_ok(lancet.edit(job))
    return lancet


def test_log_shows_each_edit_with_its_batch_and_how_it_holds(made):
    log = log_of(made, made.folder / "f32-6")
    assert log["base"]["folder"] == str(DATA / "demo-model") and len(log["base"]["weights"]) == 32
    assert [[edit["id"] for edit in batch["edits"]] for batch in log["batches"]] == [IDS[:2], IDS[2:4], IDS[4:]]
    report = json.loads((made.folder / "f32-6" / "report.json").read_text())
    for batch in log["batches"]:
        assert batch["method"] == "memit" and batch["when"].endswith("Z")
        for edit in batch["edits"]:
            told = next(each for each in report["requests"] if each["id"] == edit["id"])
            assert edit["success"] == told["verdict"]["success"] and edit["why"] == (told["verdict"]["why"] or "")
            assert set(edit["after"]) >= {"efficacy_prob", "specificity_prob"}
    for metric in ("efficacy_prob", "efficacy_argmax"):
        values = [edit["after"][metric] for batch in log["batches"] for edit in batch["edits"]]
        assert sum(values) / 6 == pytest.approx(report["metrics"][metric]["after"])
    text = run_ok(made.run("log", made.folder / "f32-6")).stdout
    assert all(identity in text for identity in IDS) and "batch  3" in text
    assert re.search(r"^  batch +id +fact +success +efficacy_prob +paraphrase_prob +specificity_prob$", text, re.M), text
    held = log_of(made, made.folder / "f32-6", "--where", "success == true")
    assert sum(len(batch["edits"]) for batch in held["batches"]) == sum(e["success"] for b in log["batches"] for e in b["edits"])


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_apply_makes_the_same_bytes_in_another_process(made, lancet, dtype):
    first, again = made.folder / f"{dtype}-6", lancet.folder / "again"
    run_ok(lancet.run("apply", first, "--to", DATA / "demo-model", "--out", again))
    assert weights(again) == weights(first)
    assert lines(again)[: len(lines(first)) - 1] == lines(first)[:-1]  # what was measured again comes after
    before, after = (json.loads((folder / "report.json").read_text())["metrics"] for folder in (first, again))
    assert {name: metric["after"] for name, metric in after.items()} == {name: metric["after"] for name, metric in before.items()}


def test_a_folder_of_edits_goes_under_any_name(made, lancet):
    """Also where it is copied beside another output's own edits/, and where a job of the reader's lies around it."""
    first, other = made.folder / "f32-6", lancet.folder / "other"
    passed_on = shutil.copytree(first / "edits", lancet.folder / "from Ann")
    shutil.copytree(made.folder / "f32-4", other)
    inside = shutil.copytree(first / "edits", other / "anns")
    foreign = shutil.copytree(first / "edits", lancet.folder / "desk" / "edits")
    (foreign.parent / "job.yaml").write_text("output: {format: adapter}\n")
    for number, edits in enumerate((passed_on, inside, foreign, first / "edits")):
        out = lancet.folder / f"again-{number}"
        run_ok(lancet.run("apply", edits, "--to", DATA / "demo-model", "--out", out))
        assert weights(out) == weights(first), edits
        assert [edit["id"] for batch in log_of(lancet, edits)["batches"] for edit in batch["edits"]] == IDS
    undone = run_ok(lancet.run("undo", passed_on, "--out", lancet.out))
    assert weights(lancet.out) == weights(made.folder / "f32-4"), undone.stderr
    in_place = lancet.run("undo", passed_on)
    assert in_place.returncode == 2 and "is a folder of edits alone" in in_place.stderr and "--out" in in_place.stderr
    assert sorted(path.name for path in passed_on.iterdir()) == sorted(path.name for path in (first / "edits").iterdir())


def test_undo_of_the_edits_folder_is_that_of_the_output_around_it(made, lancet):
    shutil.copytree(made.folder / "f32-6", lancet.out)
    run_ok(lancet.run("undo", lancet.out / "edits"))
    assert weights(lancet.out) == weights(made.folder / "f32-4")


def test_the_last_line_of_an_edit_is_what_a_colleague_types(lancet):
    said = run_ok(lancet.edit(lancet.job(**{**STREAM, "requests__limit": 2, "schedule": {"batch": 0}}))).stdout
    line = re.fullmatch(r"  to pass on: (.*), under any name; there: (lancet apply .*)", said.splitlines()[-1])
    passed_on = shutil.copytree(line[1], lancet.folder / "passed on")
    words = [{"edits": passed_on, "MODEL": DATA / "demo-model", "DIR": lancet.folder / "there"}.get(word, word) for word in line[2].split()]
    run_ok(lancet.run(*words[1:]))
    assert weights(lancet.folder / "there") == weights(lancet.out)


def test_edits_of_which_none_took_are_not_passed_on(lancet):
    said = run_ok(lancet.edit(lancet.job(evaluate=["efficacy"], editor__values={"steps": 1, "lr": 1e-6, "clamp": 0.001}))).stdout
    assert "0 of 3 edits took" in said and "to pass on" not in said


def test_apply_on_three_ranks_makes_the_same_bytes(made, lancet):
    run_ok(lancet.run("launch", "--ranks", "3", "--", "apply", made.folder / "bf16-6", "--out", lancet.folder / "again"))
    assert weights(lancet.folder / "again") == weights(made.folder / "bf16-6")


def test_apply_goes_on_being_gone_on_from(made, lancet):
    run_ok(lancet.run("apply", made.folder / "f32-4", "--out", lancet.folder / "again"))
    rest = {**STREAM, "requests__skip": 4, "requests__limit": 2, "continue_from": str(lancet.folder / "again"), "run__dtype": "f32"}
    run_ok(lancet.edit(lancet.job(**rest)))
    assert weights(lancet.out) == weights(made.folder / "f32-6")


def test_apply_can_write_an_adapter(made, lancet):
    adapter = lancet.folder / "lora"
    run_ok(lancet.run("apply", made.folder / "f32-6", "--out", adapter, "--adapter"))
    assert (adapter / "adapter_model.safetensors").exists() and not (adapter / "model.safetensors").exists()
    result = lancet.run("generate", "--model", adapter, "--prompt", "x")
    assert result.returncode == 3 and f"lancet apply {adapter} --to MODEL --out DIR" in result.stderr
    run_ok(lancet.run("apply", adapter, "--out", lancet.folder / "model"))
    assert weights(lancet.folder / "model") == weights(made.folder / "f32-6")


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_undo_of_the_last_batch_gives_the_bytes_of_the_run_without_it(made, lancet, dtype):
    run_ok(lancet.run("undo", made.folder / f"{dtype}-6", "--out", lancet.folder / "less"))
    assert weights(lancet.folder / "less") == weights(made.folder / f"{dtype}-4")
    log = log_of(lancet, lancet.folder / "less")
    assert [undo["edits"] for undo in log["undone"]] == [IDS[4:]] and log["undone"][0]["mode"] == "last"
    assert [edit["id"] for batch in log["batches"] for edit in batch["edits"]] == IDS[:4]
    # and the journal only grew
    assert lines(lancet.folder / "less")[: len(lines(made.folder / f"{dtype}-6"))] == lines(made.folder / f"{dtype}-6")


def test_undo_in_place_is_all_or_nothing_and_can_be_repeated(made, lancet):
    shutil.copytree(made.folder / "f32-6", lancet.out)
    run_ok(lancet.run("undo", lancet.out))
    assert weights(lancet.out) == weights(made.folder / "f32-4")
    run_ok(lancet.run("undo", lancet.out))
    assert [edit["id"] for batch in log_of(lancet, lancet.out)["batches"] for edit in batch["edits"]] == IDS[:2]
    kept = weights(lancet.out)
    result = lancet.run("undo", lancet.out)
    assert result.returncode == 2 and "all edits are chosen" in result.stderr
    assert weights(lancet.out) == kept


def test_replay_is_as_if_the_edit_had_never_been(made, lancet):
    whole, without = lancet.folder / "whole", lancet.folder / "without"
    run_ok(lancet.edit(lancet.job(**{**STREAM, "requests__limit": 5}, output={"dir": str(without)})))
    run_ok(lancet.run("undo", made.folder / "f32-6", "--edits", IDS[5], "--mode", "replay", "--out", whole))
    assert weights(whole) == weights(without)
    # of the first batch: everything after it is edited again
    run_ok(lancet.run("undo", made.folder / "f32-6", "--edits", f"{IDS[0]},{IDS[1]}", "--mode", "replay", "--out", whole, "--replace"))
    after = {**STREAM, "requests__skip": 2, "requests__limit": 4}
    run_ok(lancet.edit(lancet.job(**after, output={"dir": str(without), "replace": True})))
    assert weights(whole) == weights(without)


def test_undo_by_how_edits_hold(made, lancet):
    log = log_of(made, made.folder / "f32-6")
    edits = [edit for batch in log["batches"] for edit in batch["edits"]]
    metric, bound = next((name, max(edit["after"][name] for edit in edits)) for name in edits[0]["after"] if len({edit["after"][name] for edit in edits}) > 1)
    worst = {edit["id"] for edit in edits if edit["after"][metric] < bound}
    run_ok(lancet.run("undo", made.folder / "f32-6", "--where", f"{metric}.after < {bound}", "--mode", "replay", "--out", lancet.out))
    assert set(log_of(lancet, lancet.out)["undone"][0]["edits"]) == worst


def test_edits_of_another_base_are_refused_added_anyway_or_made_again(made, lancet):
    other = lancet.folder / "other"
    tuned = lancet.job(editor={"method": "ft-m", "steps": 8}, statistics=None, requests__skip=100, output={"dir": str(other)})
    run_ok(lancet.edit(tuned))
    result = lancet.run("apply", made.folder / "f32-6", "--to", other, "--out", lancet.out)
    assert result.returncode == 2 and "edits of another model" in result.stderr and "--rebase" in result.stderr
    assert not lancet.out.exists()
    run_ok(lancet.run("apply", made.folder / "f32-6", "--to", other, "--out", lancet.out, "--add-anyway"))
    added = weights(lancet.out)
    result = run_ok(lancet.run("apply", made.folder / "f32-6", "--to", other, "--out", lancet.out, "--replace", "--rebase"))
    assert "keys here and there: cosine 0.9" in result.stdout and weights(lancet.out) != added
    # the same as editing there
    there = lancet.folder / "there"
    run_ok(lancet.edit(lancet.job(**STREAM, model=str(other), output={"dir": str(there)})))
    assert weights(lancet.out) == weights(there)


def test_wrong_questions_get_answers(made, lancet):
    edits = made.folder / "f32-6"
    for arguments, words in [
        (["log", lancet.folder], "expected the output of lancet edit"),
        (["apply", lancet.folder, "--out", lancet.out], "expected the output of lancet edit"),
        (["undo", edits, "--edits", "nobody", "--out", lancet.out], "none of this id stands"),
        (["undo", edits, "--last", "9", "--out", lancet.out], "expected 1 to 3"),
        (["undo", edits, "--where", "efficacy < 1", "--out", lancet.out], "expected METRIC.after"),
        (["undo", edits, "--where", "nothing.after < 1", "--out", lancet.out], "has no nothing"),
        (["undo", edits, "--mode", "last", "--edits", IDS[0], "--out", lancet.out], "not all of the last batches"),
    ]:
        result = lancet.run(*arguments)
        assert result.returncode == 2 and words in result.stderr, (arguments, result.stderr)
    assert not lancet.out.exists()


def test_downdate_leaves_the_batch_without_the_edit(made, lancet):
    """With one edited layer it is the batch without the edit: what lancet edits without it, up to the values' own rounding."""
    one = {**STREAM, "editor__layers": [1], "schedule": {"batch": 0}, "requests__limit": 4, "run__dtype": "f32"}
    whole, without = lancet.folder / "whole", lancet.folder / "without"
    run_ok(lancet.edit(lancet.job(**one, output={"dir": str(whole)})))
    kept = lancet.folder / "kept.json"
    records = json.loads((DATA / "requests" / "demo.json").read_text())[:4]
    kept.write_text(json.dumps([record for record in records if str(record["case_id"]) != IDS[1]]))
    run_ok(lancet.edit(lancet.job(**{**one, "requests": {"path": str(kept)}}, output={"dir": str(without)})))
    result = run_ok(lancet.run("undo", whole, "--edits", IDS[1], "--out", lancet.out))
    record = json.loads((DATA / "requests" / "demo.json").read_text())[1]["requested_rewrite"]
    fact = f"{IDS[1]}  {record['prompt'].format(record['subject'])} → {record['target_new']['str']}"
    assert f"  taken back (downdate): 1 edit\n    {fact}\n" in result.stdout
    name = "model.layers.1.mlp.down_proj.weight"
    base, got, expected = (load_file(folder / "model.safetensors")[name].double() for folder in (DATA / "demo-model", lancet.out, without))
    assert (got - expected).norm() < 1e-3 * (expected - base).norm() < 1e-3 * base.norm()
    assert (load_file(whole / "model.safetensors")[name].double() - expected).norm() > 0.05 * (expected - base).norm()
    undone = log_of(lancet, lancet.out)["undone"]
    assert undone[0]["mode"] == "downdate" and undone[0]["edits"] == [IDS[1]]
    # goes on from, and is applied again
    run_ok(lancet.run("apply", lancet.out, "--out", lancet.folder / "again"))
    assert weights(lancet.folder / "again") == weights(lancet.out)


@pytest.mark.parametrize("method", ["alphaedit", "emmet", "nse"])
def test_downdate_of_a_stream_solves_later_batches_again(lancet, method):
    editor = {"method": method, "layers": [1], "values": {"steps": 12, "lr": 0.5, "clamp": 4.0}, "contexts": ["{}"]}
    job = {"requests__limit": 6, "schedule": {"batch": 2}, "run__threads": 1, "editor": editor, "output": {"dir": str(lancet.folder / "whole")}}
    run_ok(lancet.edit(lancet.job(**job)))
    run_ok(lancet.run("undo", lancet.folder / "whole", "--edits", IDS[0], "--mode", "downdate", "--out", lancet.out))
    log = log_of(lancet, lancet.out)
    assert [[edit["id"] for edit in batch["edits"]] for batch in log["batches"]] == [IDS[1:2], IDS[2:4], IDS[4:]]
    rest = {**job, "requests__skip": 6, "requests__limit": 1, "continue_from": str(lancet.out), "output": {"dir": str(lancet.folder / "more")}}
    run_ok(lancet.edit(lancet.job(**rest)))


def test_replay_takes_jobs_that_differ_in_their_folders_alone(made, lancet):
    lancet.cache = lancet.folder / "cache"
    moved = shutil.copytree(made.folder / "f32-4", lancet.folder / "moved")
    rest = {**STREAM, "requests__skip": 4, "requests__limit": 2, "continue_from": str(moved), "run__dtype": "f32", "run__timeout_s": 500}
    run_ok(lancet.edit(lancet.job(**rest, output={"dir": str(lancet.folder / "rest")})))  # with a cache of its own
    assert sum(entry["kind"] == "setting" for entry in entries(lancet.folder / "rest")) == 2
    for folder, out in ((made.folder / "f32-6", "one"), (lancet.folder / "rest", "two")):
        run_ok(lancet.run("undo", folder, "--edits", IDS[0], "--mode", "replay", "--out", lancet.folder / out))
    assert weights(lancet.folder / "two") == weights(lancet.folder / "one")
    other = {**rest, "editor__covariance_weight": 30, "output": {"dir": str(lancet.folder / "other")}}
    run_ok(lancet.edit(lancet.job(**other)))
    result = lancet.run("undo", lancet.folder / "other", "--edits", IDS[0], "--mode", "replay", "--out", lancet.out)
    assert result.returncode == 2 and "were edited by different jobs" in result.stderr


def test_methods_without_systems_say_replay(made, lancet):
    job = lancet.job(editor={"method": "ft-m", "steps": 4}, statistics=None, requests__limit=2, output={"dir": str(lancet.folder / "tuned")})
    run_ok(lancet.edit(job))
    result = lancet.run("undo", lancet.folder / "tuned", "--edits", IDS[0], "--out", lancet.out)
    assert result.returncode == 2 and "replay" in result.stderr and not lancet.out.exists()


def test_two_outputs_become_one(made, lancet):
    first, second, both = lancet.folder / "a", lancet.folder / "b", lancet.folder / "both"
    job = {**STREAM, "schedule": {"batch": 0}}
    run_ok(lancet.edit(lancet.job(**{**job, "requests__limit": 3}, output={"dir": str(first)})))
    run_ok(lancet.edit(lancet.job(**{**job, "requests__limit": 3, "requests__skip": 3}, output={"dir": str(second)})))
    result = run_ok(lancet.run("merge", first, second, "--out", both))
    assert "what the other parts do at an edit's key" in result.stdout
    assert [[edit["id"] for edit in batch["edits"]] for batch in log_of(lancet, both)["batches"]] == [IDS[:3], IDS[3:]]
    added = weights(both)
    # the folders of edits alone, as they were handed over, under other names
    anns, bens = (shutil.copytree(folder / "edits", lancet.folder / name) for folder, name in ((first, "from Ann"), (second, "edits (1)")))
    first.rename(lancet.folder / "away")
    run_ok(lancet.run("merge", anns, bens, "--out", lancet.folder / "handed over"))
    assert weights(lancet.folder / "handed over") == added and lines(lancet.folder / "handed over")[:-1] == lines(both)[:-1]
    run_ok(lancet.run("merge", anns, second, "--out", lancet.folder / "mixed", "--solve"))
    (lancet.folder / "away").rename(first)
    run_ok(lancet.run("merge", first, second, "--out", both, "--replace", "--solve"))
    assert weights(both) == weights(lancet.folder / "mixed")
    assert [[edit["id"] for edit in batch["edits"]] for batch in log_of(lancet, both)["batches"]] == [IDS]
    assert weights(both) != added
    # one fact with another target
    records = json.loads((DATA / "requests" / "demo.json").read_text())[:2]
    other = [{"id": "mine", "prompt": "{}, created in", "subject": "Piranha Games", "target": "Rome"}]
    assert records[0]["requested_rewrite"]["subject"] == "Piranha Games" if "requested_rewrite" in records[0] else True
    run_ok(lancet.edit(lancet.job(**{**job, "requests": other, "evaluate": ["efficacy"]}, output={"dir": str(second), "replace": True})))
    result = lancet.run("merge", first, second, "--out", both, "--replace")
    assert result.returncode == 2 and "targets" in result.stderr and "--prefer" in result.stderr
    run_ok(lancet.run("merge", first, second, "--out", both, "--replace", "--prefer", second))
    assert [edit["id"] for batch in log_of(lancet, both)["batches"] for edit in batch["edits"]] == [*IDS[1:3], "mine"]
    run_ok(lancet.run("merge", first, second, "--out", both, "--replace", "--drop", "mine", "--solve"))
    assert [edit["id"] for batch in log_of(lancet, both)["batches"] for edit in batch["edits"]] == IDS[:3]


@pytest.mark.parametrize("damage", ["cut", "flipped", "reordered", "changes", "solved"])
def test_a_damaged_history_is_named_and_never_used(made, lancet, damage):
    shutil.copytree(made.folder / "f32-6", lancet.out)
    journal = lancet.out / "edits" / "journal.jsonl"
    text = journal.read_text().splitlines(keepends=True)
    if damage == "cut":
        journal.write_text("".join(text[:-1]))
    elif damage == "flipped":
        journal.write_text("".join(text).replace('"target":"', '"target":"X', 1))
    elif damage == "reordered":
        journal.write_text("".join([text[0], text[2], text[1], *text[3:]]))
    else:
        file = next((lancet.out / "edits" / damage).iterdir())
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    for command in (["apply", lancet.out, "--out", lancet.folder / "again"], ["undo", lancet.out]):
        result = lancet.run(*command)
        assert result.returncode == 3, result.stderr
        assert ("journal.jsonl: " if damage in ("cut", "flipped", "reordered") else f"edits/{damage}/") in result.stderr
    assert weights(lancet.out) == weights(made.folder / "f32-6") and not (lancet.folder / "again").exists()
