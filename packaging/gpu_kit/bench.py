"""bench: is it fast? Every stage at the shape of Llama-3-8B in bf16 with random weights, a process for each group of benchmarks."""
import json
from dataclasses import dataclass

from steps import Step

LLAMA_3_8B = "llama-3-8b"


@dataclass
class Size:
    shape: str
    dtype: str
    requests: tuple  # of the value benchmarks
    tokens: int
    layers: str  # of the statistics
    value_layer: int
    solve_size: int
    solve_requests: int
    peak_size: int
    more: tuple = ()  # flags

    def flags(self, settings):
        return [
            "--shape", settings.shape or self.shape, "--dtype", self.dtype, "--devices", settings.devices[0],
            "--peak-size", self.peak_size, "--value-layer", self.value_layer, "--statistics-tokens", self.tokens,
            "--statistics-layers", self.layers, "--solve-sizes", self.solve_size, "--solve-requests", self.solve_requests,
            "--benchmark_format=json", *self.more,
        ]  # fmt: skip


LARGE = Size(LLAMA_3_8B, "bf16", (512, 1, 64), 1_000_000, "4,5,6,7,8", 8, 14336, 1000, 8192)
SMALL = Size(
    "hidden=128,ffn=384,layers=8,heads=8,kv_heads=4,vocab=4096", "f32", (8, 1), 4000, "0,1", 1, 256, 50, 256, ("--benchmark_min_time=0.05",)
)  # fmt: skip


def size_of(settings):
    return SMALL if settings.is_host_only else LARGE


def parse_benchmarks(text):
    """Also of a process that was ended between two benchmarks: what it had printed."""
    begin, end = text.find("{"), text.rfind("    }")
    if begin < 0:
        raise ValueError("no benchmark")
    try:
        document = json.loads(text[begin:])
    except json.JSONDecodeError:
        if end < 0:
            raise ValueError("no benchmark") from None
        document = json.loads(text[begin : end + len("    }")] + "]}")
    own = {"family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "run_name", "run_type", "name", "cpu_time"}
    found = {row["name"].removesuffix("/manual_time").replace("/iterations:1", ""): {k: v for k, v in row.items() if k not in own} for row in document["benchmarks"]}
    errors = [f"{name}: {row['error_message']}" for name, row in found.items() if row.get("error_occurred")]
    if errors or not found:
        raise ValueError("; ".join(errors) or "no benchmark")
    return {"context": document["context"], "benchmarks": found}


def text_of(number):
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


# What the table shows of each benchmark besides its time.
SHOWN = (
    "edits/h", "steps/request", "tokens/s", "TFLOP/s", "peak_share", "step/products", "factor_ms", "load_ms", "solve_ms", "lu_ms",
    "first_ms", "kernels/step", "copies/step", "kernels", "copies", "idle_share",
)  # fmt: skip


def read(text):
    figures = parse_benchmarks(text)
    lines = []
    for name, row in figures["benchmarks"].items():
        counters = [f"{key} {text_of(row[key])}" for key in SHOWN if key in row]
        lines.append(f"{name} {text_of(row['real_time'])} {row['time_unit']}" + (f" ({', '.join(counters)})" if counters else ""))
    return {"headline": "; ".join(lines), **figures}


def steps(settings):
    size = size_of(settings)

    def group(name, pattern, limit_s, *more):
        command = settings.program("lancet_bench", f"--benchmark_filter={pattern}", *size.flags(settings), *more)
        return Step(f"bench/{name}", command, limit_s, read)

    most, one, *others = size.requests
    yield group(f"values of {most}", "^values/", 150, "--value-requests", most)
    yield group(f"values of {one}", "^values/", 60, "--value-requests", one)
    yield group("statistics", "^statistics/", 120)
    yield group("solve", "^solve/", 120)
    yield group("forward", "^(matmul|forward)", 90)
    yield group("attention", "^attention/", 120)
    step_requests = ",".join(map(str, sorted(size.requests)))
    yield group("value_step", "^value_step/", 120, "--value-requests", step_requests)
    launches = group("launches", "^launches/", 120, "--value-requests", f"{most},{one}")
    if settings.is_host_only:
        launches.skip = "a profile of a GPU"
    yield launches
    for requests in others:
        yield group(f"values of {requests}", "^values/", 90, "--value-requests", requests)
    yield from graphs(settings, group, (one, most, *others))


def graphs(settings, group, requests):
    """The same values with run.cuda_graphs, and what such a step launches."""
    shown = [group(f"values of {n} as graphs", "^values/", 90, "--value-graphs", "--value-requests", n) for n in requests]
    shown.append(group("launches of graphs", "^launches/requests", 90, "--value-graphs", "--value-requests", requests[0]))
    for step in shown:
        if settings.is_host_only:
            step.skip = "graphs of a GPU"
        yield step


# ---- against the wishes ----


def wish(name, wished, measured, verdict):
    return {"name": name, "wished": wished, "measured": measured, "verdict": verdict}


def judge(settings, name, limit, value, unit):
    """`limit`: ">= 100000" or "< 0.5". Another shape than Llama-3-8B's is measured, and not judged."""
    relation, bound = limit.split()
    wished = f"{relation} {float(bound):,g} {unit}".strip()
    if value is None:
        return wish(name, wished, "", "not measured")
    is_met = value >= float(bound) if relation == ">=" else value < float(bound)
    is_meant = not settings.is_host_only and settings.shape in ("", LLAMA_3_8B)
    return wish(name, wished, f"{text_of(value)} {unit}".strip(), ("met" if is_met else "missed") if is_meant else "of another shape")


def wishes(settings, outcomes):
    size = size_of(settings)
    most, one = size.requests[:2]

    def figure(step, benchmark, key, factor=1.0):
        outcome = outcomes.get(f"bench/{step}")
        row = outcome.figures.get("benchmarks", {}).get(benchmark, {}) if outcome else {}
        return row[key] * factor if key in row else None

    layers = len(size.layers.split(","))
    solve = f"solve/requests:{size.solve_requests}/n:{size.solve_size}"
    solve_s = figure("solve", solve, "solve_ms", layers / 1000)
    cached_s = figure("solve", solve, "real_time", layers / 1000)


    def as_graphs(requests, key, unit, factor=1.0):
        value = figure(f"values of {requests} as graphs", f"values/no_stop/requests:{requests}", key, factor)
        return wish("  the same with run.cuda_graphs", "", "" if value is None else f"{text_of(value)} {unit}".strip(), "")

    return [
        judge(settings, f"edits an hour, {most} at once, 25 steps", ">= 100000", figure(f"values of {most}", f"values/no_stop/requests:{most}", "edits/h"), ""),
        as_graphs(most, "edits/h", ""),
        judge(settings, "one edit's values, 25 steps", "< 0.5", figure(f"values of {one}", f"values/no_stop/requests:{one}", "real_time", 1e-3), "s"),
        as_graphs(one, "real_time", "s", 1e-3),
        judge(settings, f"statistics, {size.tokens:,} tokens, {layers} layers", "< 10", figure("statistics", f"statistics/layers:{layers}", "real_time", 1e-3), "s"),
        judge(settings, f"solves, {size.solve_requests:,} requests, {layers} layers", "< 1", solve_s, "s"),
        wish("  the same with factors from disk", "", "" if cached_s is None else f"{text_of(cached_s)} s", ""),
    ]
