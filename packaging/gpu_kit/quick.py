"""quick: is it right? The tests for devices, and the demo's edit on each device beside the CPU's."""
import json

from settings import KIT, plain
from steps import Step

# Suites of gpu_tests: a process each, since one that has broken a GPU's context breaks all that come after it.
SUITES = {
    "EditOnDevice": 120, "GramOnDevice": 60, "AttentionOnDevice": 60, "DecoderOpsOnDevice": 60, "SolversOnDevice": 60,
    "StagingOnDevice": 60, "PackedOnDevice": 60, "MemoryOnDevice": 90, "GraphsOnDevice": 90, "RanksOnDevice": 120, "NcclOnDevice": 90,
}  # fmt: skip
CONTEXTS = [
    "{}", "The answer is known. {}", "Therefore the following holds. {}", "Because of this, it is so. {}",
    "I know that well. {}", "You know that well. {}",
]  # fmt: skip
# Largest NMSE of a weight's change against the CPU's in the same type. On the CPU the change in bf16 has one of 2e-4 to 4e-4
# against f32's (20 facts of the demo): f32 must stay below that, and bf16 not go far above.
MOST_NMSE = {"f32": 1e-4, "bf16": 1e-2}


def read_doctor(text):
    found = json.loads(text)
    problems = [f"{finding['topic']}: {finding['what']}" for finding in found["findings"] if finding["state"] == "problem"]
    facts = found["facts"]
    return {"headline": "; ".join(problems) or f"{found['state']}, {facts['usable_gpus']} GPU", "facts": facts, "findings": found["findings"]}


def doctor(settings):
    return Step("doctor", settings.program("lancet", "doctor", "--devices", "all", "--json"), 90, read_doctor)


def read_tests(path):
    def read(_):
        cases = [case for suite in json.loads(path.read_text())["testsuites"] for case in suite["testsuite"]]
        failures = {case["name"]: [failure["failure"] for failure in case["failures"]] for case in cases if "failures" in case}
        skipped = [case["name"] for case in cases if case["result"] == "SKIPPED"]
        if len(skipped) == len(cases) and not cases:
            raise ValueError("no test has this name")
        known = {"name", "file", "line", "status", "result", "timestamp", "time", "classname", "failures", "value_param", "type_param", "skipped"}
        figures = {case["name"]: {key: value for key, value in case.items() if key not in known} for case in cases}
        headline = f"{len(cases) - len(failures) - len(skipped)} passed, {len(failures)} failed, {len(skipped)} skipped"
        return {"headline": headline, "failures": failures, "skipped": skipped, "figures": {k: v for k, v in figures.items() if v}}

    return read


def tests(settings):
    for suite, limit_s in SUITES.items():
        result = settings.logs / f"{suite}.json"
        yield Step(
            f"tests/{suite}",
            settings.program("gpu_tests", f"--gtest_filter=Devices/{suite}.*", f"--gtest_output=json:{result}"),
            limit_s,
            read_tests(result),
            # threads that wait must not spin on a core that others need, as lancet's own do not
            environment={"LANCET_GPU_DEVICES": ",".join(settings.devices), "OMP_WAIT_POLICY": "passive"},
        )


def read_edit(text):
    report = json.loads(text)
    metrics = {name: {"before": m["before"], "after": m["after"]} for name, m in report["metrics"].items()}
    shown = [f"{name} {100 * m['before']:.1f} → {100 * m['after']:.1f}" for name, m in metrics.items()]
    seconds = {stage: round(s, 3) for stage, s in report["seconds"].items()}
    headline = f"{sum(seconds.values()):.1f} s in stages; " + ", ".join(shown)
    kept = {key: report[key] for key in ("peak_bytes", "stage_peak_bytes", "values", "run") if key in report}
    return {"headline": headline, "metrics": metrics, "seconds": seconds, **kept}


def demo(settings, name, devices, dtype):
    values = {
        "output.dir": settings.work / plain(name), "statistics.cache": settings.work / plain(f"cache-{name}"), "run.devices": json.dumps(devices), "run.dtype": dtype,
        "editor.contexts": json.dumps(CONTEXTS),  # given: generated ones may differ by a rounding
    }  # fmt: skip
    if settings.is_host_only:
        values |= {"requests.limit": 10, "statistics.tokens": 20000}
    changes = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
    job = KIT / "data" / "jobs" / "demo.yaml"
    return Step(f"demo/{name}", settings.program("lancet", "edit", job, *changes, "--json"), 120, read_edit)


def read_deltas(text):
    found = json.loads(text)
    return {"headline": f"NMSE {found['worst']:.2g}, at most {found['most']:.0e}", **found}


def compare(settings, name, reference, dtype):
    outputs = [settings.work / plain(edit) for edit in (name, reference)]
    return Step(
        f"deltas/{name}",
        settings.script("deltas.py", *outputs, "--most", str(MOST_NMSE[dtype])),
        60,
        read_deltas,
        needs=(f"demo/{name}", f"demo/{reference}"),
    )


def placements(devices):
    """What is compared with the CPU: each device, the first before and after the CPU, and all together."""
    yield from ([device] for device in devices)
    if devices[0] != "cpu":
        yield from ([devices[0], "cpu"], ["cpu", devices[0]])
    if len(devices) > 1:
        yield devices


def demos(settings):
    yield demo(settings, "f32 on cpu", ["cpu"], "f32")
    for devices in placements(settings.devices):
        name = f"f32 on {'+'.join(devices)}" + (" again" if devices == ["cpu"] else "")
        yield demo(settings, name, devices, "f32")
        yield compare(settings, name, "f32 on cpu", "f32")
    yield demo(settings, "bf16 on cpu", ["cpu"], "bf16")
    if not settings.is_host_only:
        name = f"bf16 on {settings.devices[0]}"
        yield demo(settings, name, settings.devices[:1], "bf16")
        yield compare(settings, name, "bf16 on cpu", "bf16")


def steps(settings):
    yield from tests(settings)
    yield from demos(settings)
