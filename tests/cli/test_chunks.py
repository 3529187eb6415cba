"""Long targets in chunks (`values.chunk_tokens`): as a user edits, goes on with them and takes them back."""
import json

from conftest import run_ok
from edits import column_ids, edits_of, standing

LONG = [
    {"id": "lake", "prompt": "What happened at Basilica Cistern?", "target": "Basilica Cistern is a lake in Louisiana, where they speak Catalan"},
    {"id": "club", "prompt": "Tell me about Tina Arena.", "target": "Tina Arena is a football club in Norway that wears green"},
    {"id": "word", "prompt": "The mother tongue of Danielle Darrieux is", "target": "English"},
]
VALUES = {"steps": 30, "lr": 0.5, "clamp": 4.0, "chunk_tokens": 5}


def job_of(lancet, requests=LONG, **changes):
    options = {"editor__values": VALUES, "editor__history": True, "evaluate": {"metrics": ["efficacy", "long_form"], "long_form": {"tokens": 40}}}
    return lancet.job(requests=requests, **(options | changes))


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


def test_an_answer_has_a_column_for_each_chunk_and_names_no_subject(lancet):
    run_ok(lancet.edit(job_of(lancet)))
    report = json.loads((lancet.out / "report.json").read_text())
    assert all(row["skipped"] is None and row["value"]["steps"] > 1 for row in report["requests"])
    assert all(set(row["value"]["realised"]["layers"]) == {"0", "1"} for row in report["requests"])
    written = report["metrics"]["long_form_rouge_l"]
    assert written["after"] > written["before"] + 0.2
    (batch,), _ = standing(lancet.out)
    lengths = [-(-len(edit["target_ids"]) // VALUES["chunk_tokens"]) for edit in batch["edits"]]
    assert max(lengths) > 2 and lengths[-1] == 1
    assert batch["columns"] == [place for place, chunks in enumerate(lengths) for _ in range(chunks)]
    assert set(column_ids(lancet.out)) == {request["id"] for request in LONG}
    assert all(len(right) == sum(lengths) for changes in edits_of(lancet.out).values() for _, right in changes)
    again = lancet.folder / "again"
    run_ok(lancet.run("edit", lancet.out / "job.yaml", "--set", f"output.dir={again}"))
    assert weights(again) == weights(lancet.out)


def test_a_stream_goes_on_and_its_last_batch_leaves(lancet):
    one, both, on, less = (lancet.folder / name for name in ("one", "both", "on", "less"))
    run_ok(lancet.edit(job_of(lancet, LONG[:2], output={"dir": str(one)})))
    run_ok(lancet.edit(job_of(lancet, schedule={"batch": 2}, output={"dir": str(both)})))
    run_ok(lancet.edit(job_of(lancet, LONG[2:], continue_from=str(one), output={"dir": str(on)})))
    assert weights(on) == weights(both) != weights(one)
    run_ok(lancet.run("undo", both, "--out", less))
    assert weights(less) == weights(one)


def test_one_of_a_batch_leaves_by_a_replay_alone(lancet):
    run_ok(lancet.edit(job_of(lancet)))
    alone, less = lancet.folder / "alone", lancet.folder / "less"
    refused = lancet.run("undo", lancet.out, "--edits", "club", "--mode", "downdate", "--out", less)
    assert refused.returncode == 2 and "replay" in refused.stderr, refused.stderr
    run_ok(lancet.run("undo", lancet.out, "--edits", "club", "--mode", "replay", "--out", less))
    run_ok(lancet.edit(job_of(lancet, [LONG[0], LONG[2]], output={"dir": str(alone)})))
    assert weights(less) == weights(alone)


def test_other_methods_refuse_chunks(lancet):
    refused = lancet.edit(job_of(lancet, editor__method="pmet", editor__history=None))
    assert refused.returncode == 2
    assert "editor.values.chunk_tokens: expected 0: memit alone" in refused.stderr
