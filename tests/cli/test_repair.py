"""`editor.repair`: what does not hold after a batch of a located method is trained."""
import json

import pytest
from conftest import run_ok
from edits import column_ids, edit_files
from test_bad_input import CONFIG, refuses

LOCATED = {"layers": [0, 1], "contexts": ["{}"], "values": {"steps": 8, "lr": 0.5, "clamp": 1.0}}
METHODS = {
    "memit": {"method": "memit", "covariance_weight": 300, "history": True, **LOCATED},
    "alphaedit": {"method": "alphaedit", "null_space_below": 5, "ridge": 100, **LOCATED},
    "nse": {"method": "nse", "covariance_weight": 300, **LOCATED},
}
REPAIR = {"steps": 12, "batch": 4, "revisit": 4}


def edited(lancet, out, method="memit", repair=REPAIR, **changes):
    editor = METHODS[method] | ({} if repair is None else {"repair": repair})
    job = lancet.job(**{"editor": editor, "schedule": {"batch": 4, "measure_every": 0}, "run__threads": 1, "evaluate": ["efficacy"],
                        "requests__limit": 12, "output": {"dir": str(lancet.folder / out)}} | changes)  # fmt: skip
    return lancet.edit(job)


def held(folder):
    """Of the first batch's four."""
    return sum(r["metrics"]["efficacy_argmax"]["after"] for r in json.loads((folder / "report.json").read_text())["requests"][:4])


@pytest.mark.parametrize("method", METHODS)
def test_the_first_batch_holds(lancet, method):
    plain, repaired = lancet.folder / "plain", lancet.folder / "repaired"
    run_ok(edited(lancet, "plain", method, None))
    run_ok(edited(lancet, "repaired", method))
    assert held(repaired) == 4 > held(plain)


def test_a_stream_goes_on_in_another_process_and_its_last_batch_leaves(lancet):
    whole, first, both = (lancet.folder / name for name in ("whole", "first", "both"))
    run_ok(edited(lancet, "whole"))
    run_ok(edited(lancet, "first", requests__limit=8))
    run_ok(edited(lancet, "both", requests__limit=4, requests__skip=8, continue_from="first"))
    assert edit_files(both) == edit_files(whole)
    assert (both / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    run_ok(lancet.run("undo", both, "--out", lancet.folder / "less"))
    assert (lancet.folder / "less" / "model.safetensors").read_bytes() == (first / "model.safetensors").read_bytes()
    # and one edit by itself only by a replay, which trains again
    last = column_ids(both)[-1]
    refuses(lancet, lancet.run("undo", both, "--edits", last, "--mode", "downdate", "--out", lancet.folder / "fewer"), CONFIG, "--mode replay")
    run_ok(edited(lancet, "second", requests__limit=4, requests__skip=8))
    merge = ["merge", first, lancet.folder / "second", "--out", lancet.folder / "merged"]
    refuses(lancet, lancet.run(*merge, "--solve"), CONFIG, "trained, not solved", "add the changes instead")
    run_ok(lancet.run(*merge))
    refuses(lancet, edited(lancet, "other", repair=None, requests__limit=4, requests__skip=8, continue_from="first"), CONFIG, "repair")


@pytest.mark.parametrize(
    ("editor", "parts"),
    [
        (METHODS["memit"] | {"repair": {"steps": 0}}, ["editor.repair.steps"]),
        (METHODS["memit"] | {"history": False, "text_budget": 0.1, "repair": {}}, ["editor.repair", "text_budget"]),
        (METHODS["alphaedit"] | {"repair": {"whiten": 0.1}}, ["editor.repair.whiten"]),
        (METHODS["memit"] | {"method": "pmet", "repair": {}}, ["editor.repair: unknown key"]),
    ],
)
def test_what_has_no_repair(lancet, editor, parts):
    result = lancet.edit(lancet.job(editor=editor))
    refuses(lancet, result, CONFIG, *parts)


def test_a_rate_beyond_all_numbers_is_named_and_writes_nothing(lancet):
    result = edited(lancet, "wild", repair=REPAIR | {"lr": 1e30})
    assert result.returncode == 5 and "editor.repair.lr" in result.stderr and not (lancet.folder / "wild").exists()
