"""results.json, table.txt and logs.tar.gz: what each step came to, the figures beside what was wished for, what was printed."""
import importlib.util
import json
import os
import platform
import re
import tarfile
from pathlib import Path

from steps import BAD


def torch_version():
    """From its file: importing torch takes seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return None
    version = Path(spec.origin).with_name("version.py")
    found = re.search(r"""__version__\s*(?::\s*str\s*)?=\s*['"]([^'"]+)""", version.read_text() if version.exists() else "")
    return found[1] if found else None


def machine():
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
    }


def versions(doctor):
    return {"python": platform.python_version(), "torch": torch_version(), **((doctor or {}).get("versions", {}))}


def results(settings, runner, begun, seconds, wishes):
    outcomes = list(runner.outcomes.values())
    return {
        "format": "lancet-gpu-kit-1",
        "mode": settings.mode,
        "devices": settings.devices,
        "begun": begun,
        "seconds": round(seconds, 1),
        "failed": len([outcome for outcome in outcomes if outcome.state in BAD]),
        "machine": machine(),
        "versions": versions(settings.doctor),
        "steps": [outcome.to_json() for outcome in outcomes],
        "wishes": wishes,
    }


def write(document, settings):
    """The three files of a run, each whole or not at all: a run that is killed leaves what it had."""
    replace(settings.out / "results.json", lambda path: path.write_text(json.dumps(document, indent=1) + "\n"))
    replace(settings.out / "table.txt", lambda path: path.write_text(table(document) + "\n"))
    replace(settings.out / "logs.tar.gz", lambda path: pack(settings.logs, path))


def replace(path, write_to):
    partial = path.with_name(path.name + ".partial")
    try:
        write_to(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def pack(logs, path):
    """Without who ran it: the archive goes elsewhere."""

    def without_owner(info):
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(path, "w:gz", compresslevel=6) as archive:
        archive.add(logs, arcname="logs", filter=without_owner)


def row(step):
    words = [step["figures"].get("headline", ""), step["note"]]
    return f"  {step['state']:<10}{step['seconds']:>7.1f} s  {step['name']:<34}{'; '.join(word for word in words if word)}".rstrip()


def table(document):
    lines = [row(step) for step in document["steps"]]
    if document["wishes"]:
        lines += ["", f"  {'wish':<46}{'wished':>16}{'measured':>16}  verdict"]
        lines += [f"  {wish['name']:<46}{wish['wished']:>16}{wish['measured']:>16}  {wish['verdict']}" for wish in document["wishes"]]
    counts = {}
    for step in document["steps"]:
        counts[step["state"]] = counts.get(step["state"], 0) + 1
    shown = ", ".join(f"{n} {state}" for state, n in counts.items())
    return "\n".join([*lines, "", f"  {document['mode']} on {', '.join(document['devices'])}: {shown}; {document['seconds']:.0f} s"])
