"""Reads the folder edits/ of an output (docs/edits.md)."""
import json

from safetensors.numpy import load_file


def entries_of(out):
    """The journal's, in order, without its end."""
    lines = (out / "edits" / "journal.jsonl").read_text().splitlines()
    *entries, end = [json.loads(line)["entry"] for line in lines]
    assert end == {"kind": "end", "entries": len(entries)}
    return entries


def standing(out):
    """(batches, hash of what the method did after the last of them, or None)."""
    batches, finish = [], None
    for entry in entries_of(out):
        if entry["kind"] == "batch":
            batches.append(entry)
        elif entry["kind"] == "undo":
            del batches[entry["keeps"] :]
        if entry["kind"] in ("batch", "undo", "finish"):
            finish = entry.get("changes") or None if entry["kind"] == "finish" else None
    return batches, finish


def edit_files(out, parts=("changes", "solved")):
    """{"changes/HASH.safetensors": its bytes}, all there are. The names are hashes of the content."""
    return {str(path.relative_to(out / "edits")): path.read_bytes() for part in parts for path in (out / "edits" / part).iterdir()}


def edits_of(out):
    """{weight: its changes in their order}, each (left, right) or one full matrix, in [d_out, d_in]."""
    batches, finish = standing(out)
    changes = {}
    for file_hash in [batch["changes"] for batch in batches] + ([finish] if finish else []):
        tensors = load_file(out / "edits" / "changes" / f"{file_hash}.safetensors")
        for name in sorted(tensors, key=lambda name: (name.split("/")[0], int(name.split("/")[1]))):
            weight, place, part = name.split("/")
            assert part in ("left", "right", "full"), name
            if part == "full":
                changes.setdefault(weight, []).append(tensors[name])
            elif part == "left":
                changes.setdefault(weight, []).append((tensors[name], tensors[f"{weight}/{place}/right"]))
    return changes


def deltas_of(out):
    """{weight: all of its changes together}, f64."""
    dense = {name: [change[0].astype(float) @ change[1] if isinstance(change, tuple) else change.astype(float) for change in changes]
             for name, changes in edits_of(out).items()}  # fmt: skip
    return {name: sum(changes[1:], changes[0]) for name, changes in dense.items()}


def column_ids(out):
    """The request of each column of every weight's low-rank changes, in the order of application."""
    return [batch["edits"][column]["request"]["id"] for batch in standing(out)[0] for column in batch["columns"]]
