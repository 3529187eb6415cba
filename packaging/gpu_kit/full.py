"""full: a checkpoint of random weights of Llama-3-8B's shape is made, loaded and edited whole: rates, peaks, export."""
import json

import bench
from bench import judge, text_of, wish
from quick import read_edit
from settings import KIT
from steps import Step

LARGE = {"shape": bench.LLAMA_3_8B, "dtype": "bf16", "layers": [4, 5, 6], "tokens": 20_000, "steps": 25, "disk_gb": 42}
SMALL = {"shape": bench.SMALL.shape, "dtype": "f32", "layers": [1, 2], "tokens": 2_000, "steps": 5, "disk_gb": 0.2}

OWN_SHAPE_GB = 10  # for a --shape, which is there to be smaller


def size_of(settings):
    return SMALL if settings.is_host_only else LARGE


def read_disk(text):
    found = json.loads(text)
    return {"headline": f"{found['free_gb']:.0f} GB free, {found['expected_gb']} expected", **found}


def read_load(text):
    found = json.loads(text)
    rate = found["bytes"] / found["load_s"]
    return {"headline": f"{found['bytes'] / 1e9:.2f} GB in {found['load_s']:.2f} s: {rate / 1e9:.2f} GB/s", "rate": rate, **found}


def read_plan(text):
    plan = json.loads(text)
    totals = {stage["device"]: stage["total"] for stage in plan["stages"]}
    return {"headline": ", ".join(f"{device}: {total / 1e9:.2f} GB" for device, total in totals.items()), "totals": totals, "plan": plan}


def steps(settings):
    size = size_of(settings)
    shape, model, job = settings.shape or size["shape"], settings.work / "model", settings.work / "job.json"
    devices = ",".join(settings.devices)
    expected_gb = min(size["disk_gb"], OWN_SHAPE_GB) if settings.shape else size["disk_gb"]
    yield Step("disk", settings.script("disk.py", settings.work, expected_gb), 20, read_disk)
    made = settings.program("lancet_bench", "--make-checkpoint", model, "--shape", shape, "--dtype", size["dtype"])
    yield Step("checkpoint", made, 240, needs=("disk",))
    timed = settings.program("lancet_bench", "--model", model, "--file-times", "load", "--dtype", size["dtype"], "--devices", settings.devices[0])
    yield Step("load", timed, 120, read_load, needs=("checkpoint",))
    options = [json.dumps(size["layers"]), size["tokens"], size["steps"], devices]
    yield Step("job", settings.script("write_job.py", settings.work, KIT / "data", *options), 20, needs=("checkpoint",))
    yield Step("plan", settings.program("lancet", "plan", job, "--json"), 60, read_plan, needs=("job",))
    yield Step("edit", settings.program("lancet", "edit", job, "--json"), 300, read_edit, needs=("job",))
    yield Step("inspect", settings.program("lancet", "inspect", settings.work / "out"), 60, needs=("edit",))


def wishes(settings, outcomes):
    def figures(name):
        return outcomes[name].figures if name in outcomes else {}

    rate, limit = figures("load").get("rate"), settings.host_to_device_rate()
    share = 100 * rate / limit if rate and limit else None
    rows = [judge(settings, "load, of the host-to-device rate", ">= 60", share, "%")]
    for device, total in figures("plan").get("totals", {}).items():
        peak = figures("edit").get("peak_bytes", {}).get(device)
        if peak is None or device == "cpu":  # of the host the whole process counts, libraries too
            continue
        verdict = f"{text_of(peak / total)} of the estimate" + ("" if peak <= 1.1 * total else ": too little was estimated")
        rows.append(wish(f"peak on {device}, estimated", f"{total / 1e9:.2f} GB", f"{peak / 1e9:.2f} GB", verdict))
    export_s = figures("edit").get("seconds", {}).get("export")
    if export_s is not None and "bytes" in figures("load"):
        gigabytes = figures("load")["bytes"] / 1e9
        rows.append(wish("export", "", f"{export_s:.2f} s", f"{gigabytes / max(export_s, 1e-3):.2f} GB/s"))
    return rows
