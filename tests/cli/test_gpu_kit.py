"""The GPU kit on a machine without GPUs: what is packed runs elsewhere on the CPU; what fails, hangs or comes too late is told."""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import time

import pytest
from conftest import LANCET, ROOT

BUILD = LANCET.parent
PACKAGING = ROOT / "packaging"
sys.path.insert(0, str(PACKAGING / "gpu_kit"))
import bench
import deltas
import full
import quick
from settings import Settings
from steps import Outcome

RESULTS = ["logs.tar.gz", "results.json", "table.txt"]
PLAIN = re.compile(r"[A-Za-z0-9._-]+")


def environment(**changes):
    return {**os.environ, "LANCET_PYTHON": sys.executable, **changes}


def run_kit(kit, *arguments, limit_s=240, cwd=None, **changes):
    command = [str(kit / "run.sh"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd or kit.parent, timeout=limit_s, env=environment(**changes))


def names_in(archive):
    """Of all files and folders, each once it was found to be plain."""
    with tarfile.open(archive, "r:gz") as opened:
        names = [name for name in opened.getnames() if name != "."]
    assert all(PLAIN.fullmatch(part) for name in names for part in name.split("/")), names
    return names


def logs_of(out):
    """name -> text, of the logs that came along."""
    with tarfile.open(out / "logs.tar.gz", "r:gz") as opened:
        return {name.partition("/")[2]: opened.extractfile(name).read().decode() for name in opened.getnames() if name != "logs"}


def steps_of(out):
    """Whatever became of the run: three files, of the same steps, and a log of each that was begun."""
    assert sorted(path.name for path in out.iterdir()) == RESULTS
    document = json.loads((out / "results.json").read_text())
    assert document["format"] == "lancet-gpu-kit-1"
    table = (out / "table.txt").read_text()
    assert all(step["name"] in table for step in document["steps"])
    assert names_in(out / "logs.tar.gz")[0] == "logs"
    logs = logs_of(out)
    for number, step in enumerate(document["steps"]):
        own = {name for name in logs if name.startswith(f"{number:02}-")}
        if step["state"] in ("skipped", "not run"):
            assert not own, step
        else:
            (printed,) = (name for name in own if name.endswith(".out"))
            assert own == {printed, printed[:-4] + ".err"}
            assert logs[printed].endswith(step["stdout_tail"]) and logs[printed[:-4] + ".err"].endswith(step["stderr_tail"])
    return document, {step["name"]: step for step in document["steps"]}


# ---- what is packed ----


def pack(folder, **changes):
    """Benchmarks come along where they are built: make test builds none."""
    programs = ["lancet", *(["lancet_bench"] if (BUILD / "lancet_bench").exists() else []), "tests/gpu_tests"]
    command = [str(PACKAGING / "gpu_kit.sh"), str(BUILD), str(folder), *programs]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(**changes))


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed") / "gpu-kit"
    packed = pack(folder)
    assert packed.returncode == 0, packed.stderr
    elsewhere = tmp_path_factory.mktemp("else where")
    assert names_in(f"{folder}.tar.gz")[0] == "gpu-kit"
    subprocess.run(["tar", "-xzf", f"{folder}.tar.gz", "-C", str(elsewhere)], check=True)
    shutil.rmtree(folder)
    return elsewhere / "gpu-kit"


def test_quick_on_the_cpu(kit, tmp_path):
    begin = time.monotonic()
    empty, work = tmp_path / "empty", tmp_path / "work"
    empty.mkdir()
    work.mkdir()
    done = run_kit(kit, "quick", "--devices", "cpu", cwd=empty, TMPDIR=str(work), OUT="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in empty.iterdir()] == ["gpu-kit-results"] and not list(work.iterdir())
    out = empty / "gpu-kit-results"
    document, steps = steps_of(out)
    assert {f"{suite}.json" for suite in quick.SUITES} <= set(logs_of(out))
    assert document["mode"] == "quick" and document["devices"] == ["cpu"] and document["failed"] == 0
    assert document["seconds"] <= time.monotonic() - begin
    assert document["versions"]["torch"].startswith("2.11.0") and document["versions"]["lancet"]
    assert {step["state"] for step in document["steps"]} == {"ok"}
    assert steps["doctor"]["figures"]["facts"]["processor"]["cores"] > 0
    for suite in quick.SUITES:
        figures = steps[f"tests/{suite}"]["figures"]
        assert figures["failures"] == {}, suite
        assert bool(figures["skipped"]) == (suite in ("AttentionOnDevice", "DecoderOpsOnDevice", "MemoryOnDevice", "GraphsOnDevice", "NcclOnDevice")), suite
    assert "EditOnDevice" in steps["tests/EditOnDevice"]["command"]
    metrics = steps["demo/f32 on cpu"]["figures"]["metrics"]
    assert metrics["efficacy_prob"]["before"] < 0.2 and metrics["efficacy_prob"]["after"] > 0.8
    found = steps["deltas/f32 on cpu again"]["figures"]
    assert len(found["nmse"]) == 2 and found["worst"] <= found["most"] == quick.MOST_NMSE["f32"]
    table = (out / "table.txt").read_text()
    assert table in done.stdout and "efficacy_prob 0.0 → 100.0" in table and "ok" in table


def test_every_suite_of_the_tests_is_a_step(kit):
    command = [str(kit / "program.sh"), "gpu_tests", "--gtest_list_tests"]
    listed = subprocess.run(command, capture_output=True, text=True, env=environment(LANCET_GPU_DEVICES="cpu"), timeout=60)
    suites = set(re.findall(r"^Devices/(\w+)\.$", listed.stdout, re.M))
    assert suites == set(quick.SUITES), listed.stdout


def test_the_tests_read_the_kits_own_model(kit, tmp_path):
    other = shutil.copytree(kit, tmp_path / "kit")
    (other / "data" / "demo-model" / "tokenizer.json").write_text("{}")
    command = [str(other / "program.sh"), "gpu_tests", "--gtest_filter=*UltraEdit*"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(LANCET_GPU_DEVICES="cpu"), timeout=60)
    assert done.returncode == 1 and "tokenizer.json" in done.stdout + done.stderr


def test_without_a_gpu_tests_are_skipped_with_words(kit):
    command = [str(kit / "program.sh"), "gpu_tests"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(LANCET_GPU_DEVICES=""), timeout=60)
    assert done.returncode == 0 and "PASSED  ] 0 tests" in done.stdout and "LANCET_GPU_DEVICES=cpu" in done.stdout


def test_a_kit_that_is_too_large_is_refused(tmp_path):
    """A program with 36 MiB in it that nothing makes smaller."""
    (tmp_path / "noise").write_bytes(os.urandom(36 * 2**20))
    subprocess.run(["objcopy", "--add-section", f".planted={tmp_path / 'noise'}", LANCET, tmp_path / "lancet"], check=True)
    command = [str(PACKAGING / "gpu_kit.sh"), str(tmp_path), str(tmp_path / "gpu-kit"), "lancet"]
    packed = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert packed.returncode == 1 and "gpu-kit.tar.gz: expected at most 36864 KiB, got " in packed.stderr
    assert not (tmp_path / "gpu-kit.tar.gz").exists()


def test_a_program_that_is_not_built_is_named(tmp_path):
    command = [str(PACKAGING / "gpu_kit.sh"), str(tmp_path), str(tmp_path / "gpu-kit")]
    packed = subprocess.run(command, capture_output=True, text=True)
    assert packed.returncode == 1 and "lancet is not built: make gpu-kit" in packed.stderr


# ---- steps that do not end well: stand-ins for the programs ----

STAND_IN = """#!/bin/sh
here=$(dirname "$0")
case "$1 $2" in
  "lancet doctor")
    echo '{"state": "ok", "findings": [], "facts": {"usable_gpus": 0, "copies": [], "versions": {"lancet": "0"}}}' ;;
  "lancet edit") echo "no report" ;;
  *Gram*) sleep 600 & echo $! >"$here/child"; echo waiting >&2; wait ;;
  *Solvers*) echo "it broke" >&2; exit 7 ;;
  *Attention*) kill -SEGV $$ ;;
  *) for word in "$@"; do case "$word" in --gtest_output=json:*)
       echo '{"testsuites": [{"testsuite": [{"name": "Good", "result": "COMPLETED"}]}]}' >"${word#*json:}" ;;
     esac; done ;;
esac
"""


@pytest.fixture
def stand_in(tmp_path):
    folder = tmp_path / "kit of stand-ins"
    (folder / "kit").mkdir(parents=True)
    for file in (PACKAGING / "gpu_kit").iterdir():
        if file.is_file():
            shutil.copy(file, folder / "kit" if file.suffix == ".py" else folder)
    (folder / "program.sh").write_text(STAND_IN)
    (folder / "program.sh").chmod(0o755)
    return folder


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_goes_on_after_what_fails_and_what_hangs(stand_in, tmp_path):
    done = run_kit(stand_in, "quick", "--devices", "cpu", "--step-limit", "1.5", OUT=str(tmp_path / "given"))
    assert done.returncode == 1, done.stdout + done.stderr
    document, steps = steps_of(tmp_path / "given")
    hung = steps["tests/GramOnDevice"]
    assert hung["state"] == "timed out" and hung["exit_code"] is None and hung["stderr_tail"] == "waiting\n"
    assert 1.4 < hung["seconds"] < 10 and "after 2 s" in hung["note"]
    assert is_gone((stand_in / "child").read_text().strip()), "what a step has started outlives it"
    broken = steps["tests/SolversOnDevice"]
    assert (broken["state"], broken["exit_code"], broken["stderr_tail"]) == ("failed", 7, "it broke\n")
    assert (steps["tests/AttentionOnDevice"]["state"], steps["tests/AttentionOnDevice"]["exit_code"]) == ("failed", -signal.SIGSEGV)
    assert steps["demo/f32 on cpu"]["state"] == "failed" and "what it printed" in steps["demo/f32 on cpu"]["note"]
    assert steps["deltas/f32 on cpu again"]["state"] == "skipped" and "needs: demo/" in steps["deltas/f32 on cpu again"]["note"]
    assert steps["tests/NcclOnDevice"]["state"] == "ok" and steps["tests/NcclOnDevice"]["figures"]["headline"].startswith("1 passed")
    assert document["failed"] == len([step for step in document["steps"] if step["state"] in ("failed", "timed out")]) == 6
    assert "it broke" in done.stdout and "6 failed" not in done.stdout and "5 failed, " in done.stdout and "1 timed out" in done.stdout


def test_what_comes_after_the_deadline_is_told(stand_in, tmp_path):
    begin = time.monotonic()
    done = run_kit(stand_in, "quick", "--devices", "cpu", "--deadline", "2", "--out", tmp_path / "out")
    assert done.returncode == 1 and time.monotonic() - begin < 15
    document, steps = steps_of(tmp_path / "out")
    states = [step["state"] for step in document["steps"]]
    assert states[:3] == ["ok", "ok", "timed out"] and set(states[3:]) == {"not run"} and len(states) > 10
    assert "no time was left" in steps["tests/NcclOnDevice"]["note"]
    assert document["failed"] == len(states) - 2


def begin_quick(kit, out, work):
    """A run whose second suite of tests hangs, once that has begun."""
    work.mkdir()
    # as a shell starts what is to run in the background: deaf to SIGINT, unless it says that it listens
    command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", str(kit / "run.sh"), "quick", "--devices", "cpu", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(TMPDIR=str(work)))
    until = time.monotonic() + 30
    while not (kit / "child").exists() and time.monotonic() < until:
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_run_that_is_ended_leaves_its_results(stand_in, tmp_path, number):
    process = begin_quick(stand_in, tmp_path / "out", tmp_path / "work")
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    document, steps = steps_of(tmp_path / "out")
    assert steps["tests/GramOnDevice"]["note"] == "the run was stopped" and steps["tests/NcclOnDevice"]["state"] == "not run"
    assert steps["tests/GramOnDevice"]["stderr_tail"] == "waiting\n"
    assert is_gone((stand_in / "child").read_text().strip())
    assert "quick on cpu" in out and not list((tmp_path / "work").iterdir())


def test_a_run_that_is_killed_leaves_the_steps_that_ended(stand_in, tmp_path):
    (tmp_path / "out").mkdir()
    for name in RESULTS:
        (tmp_path / "out" / name).write_text("of an earlier run")
    process = begin_quick(stand_in, tmp_path / "out", tmp_path / "work")
    process.kill()
    process.communicate(timeout=30)
    os.kill(int((stand_in / "child").read_text()), signal.SIGKILL)
    document, steps = steps_of(tmp_path / "out")
    assert [(step["name"], step["state"]) for step in document["steps"]] == [("doctor", "ok"), ("tests/EditOnDevice", "ok")]


def test_results_that_cannot_be_written_are_told(stand_in, tmp_path):
    (tmp_path / "file").write_text("")
    done = run_kit(stand_in, "quick", "--devices", "cpu", "--out", tmp_path / "file")
    assert done.returncode == 2 and done.stderr.startswith("run.sh: ") and f"{tmp_path / 'file'}" in done.stderr and "--out DIR" in done.stderr


def test_names_of_steps_of_several_devices_are_plain_and_differ(tmp_path):
    steps = list(quick.steps(Settings("quick", ["cuda:0", "cuda:1"], tmp_path, tmp_path)))
    outputs = [word for step in steps for word in map(str, step.command) if word.startswith("output.dir=")]
    assert len(set(outputs)) == len(outputs) == 8
    assert all(PLAIN.fullmatch(pathlib.Path(word.partition("=")[2]).name) for word in outputs)


def test_a_python_without_torch_fails_step_by_step(kit, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    done = run_kit(kit, "quick", "--devices", "cpu", "--out", tmp_path / "out", LANCET_PYTHON=str(python), PYTHONPATH="")
    assert done.returncode == 1 and "has no torch" in done.stdout
    document, steps = steps_of(tmp_path / "out")
    assert steps["doctor"]["state"] == "failed" and document["versions"]["torch"] is None


# ---- how changes are compared ----


def write_edits(out, *batches):
    """An output with a file of changes for each batch."""
    (out / "edits" / "changes").mkdir(parents=True)
    for number, tensors in enumerate(batches):
        write_changes(out / "edits" / "changes" / f"{number:032}.safetensors", tensors)
    return out


def write_changes(path, tensors):
    header, data = {}, b""
    for name, rows in tensors.items():
        numbers = [number for row in rows for number in row]
        begin = len(data)
        data += struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": [len(rows), len(rows[0])], "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


LEFT, RIGHT = [[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]], [[1.0, 0.0, 2.0, -1.0], [0.5, 1.0, 0.0, 3.0]]


def product(left, right):
    return [sum(row[k] * right[k][j] for k in range(len(right))) for row in left for j in range(len(right[0]))]


def test_changes_are_compared_as_products(tmp_path):
    reference = write_edits(tmp_path / "a", {"w/0/left": LEFT, "w/0/right": RIGHT})
    swapped = write_edits(tmp_path / "b", {"w/0/left": [row[::-1] for row in LEFT], "w/0/right": RIGHT[::-1]})
    assert deltas.compare(swapped, reference)["w"] < deltas.ROUNDING
    # the same in two changes, of one batch and of two
    first, second = ({"left": [[row[k]] for row in LEFT], "right": [RIGHT[k]]} for k in (0, 1))
    one = {f"w/{i}/{part}": rows for i, change in enumerate((first, second)) for part, rows in change.items()}
    two = [{f"w/0/{part}": rows for part, rows in change.items()} for change in (first, second)]
    for name, batches in (("one", [one]), ("two", two)):
        assert deltas.compare(write_edits(tmp_path / name, *batches), reference)["w"] < deltas.ROUNDING
    half = write_edits(tmp_path / "half", two[0])
    assert deltas.compare(half, reference)["w"] > 0.1
    other_left = [[1.0, 2.5], [3.0, 4.0], [4.0, -6.0]]
    other = write_edits(tmp_path / "c", {"w/0/left": other_left, "w/0/right": RIGHT})
    ours, theirs = product(other_left, RIGHT), product(LEFT, RIGHT)
    expected = sum((a - b) ** 2 for a, b in zip(ours, theirs)) / sum(b * b for b in theirs)
    assert deltas.compare(other, reference)["w"] == pytest.approx(expected, rel=1e-9)
    script = [sys.executable, "-B", str(PACKAGING / "gpu_kit" / "deltas.py"), str(other), str(reference), "--most"]
    assert subprocess.run([*script, str(expected * 1.01)], capture_output=True).returncode == 0
    assert subprocess.run([*script, str(expected * 0.99)], capture_output=True).returncode == 1


def test_changes_of_other_weights_are_an_error(tmp_path):
    reference = write_edits(tmp_path / "a", {"w/0/left": LEFT, "w/0/right": RIGHT})
    other = write_edits(tmp_path / "b", {"v/0/left": LEFT, "v/0/right": RIGHT})
    with pytest.raises(ValueError, match="other weights"):
        deltas.compare(other, reference)


# ---- bench and full ----

NEEDS_BENCH = pytest.mark.skipif(not (BUILD / "lancet_bench").exists(), reason="make gpu-kit builds lancet_bench")


@NEEDS_BENCH
def test_bench_on_the_cpu(kit, tmp_path):
    done = run_kit(kit, "bench", "--devices", "cpu", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stdout
    document, steps = steps_of(tmp_path / "out")
    of_gpus = {"bench/launches", "bench/launches of graphs", "bench/values of 1 as graphs", "bench/values of 8 as graphs"}
    assert {name for name, step in steps.items() if step["state"] == "skipped"} == of_gpus
    assert all(step["figures"]["benchmarks"] for name, step in steps.items() if name.startswith("bench/") and name not in of_gpus)
    verdicts = [wish["verdict"] for wish in document["wishes"] if wish["wished"]]
    assert verdicts == ["of another shape"] * 4, "every figure is found, and none is judged by a small model"


@NEEDS_BENCH
def test_full_on_the_cpu(kit, tmp_path):
    done = run_kit(kit, "full", "--devices", "cpu", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stdout
    _, steps = steps_of(tmp_path / "out")
    assert steps["load"]["figures"]["bytes"] > 1e6 and steps["load"]["figures"]["rate"] > 0
    assert steps["edit"]["figures"]["seconds"]["export"] > 0 and steps["plan"]["figures"]["totals"]["cpu"] > 0


@NEEDS_BENCH
def test_what_a_benchmark_may_take_is_its_budget_without_the_weights(kit):
    """So a batch does not depend on what the allocator keeps from the benchmarks before it."""
    width, ffn, layers, vocab = 64, 128, 3, 512
    shape = f"hidden={width},ffn={ffn},layers={layers},heads=4,kv_heads=4,vocab={vocab}"
    command = [str(kit / "program.sh"), "lancet_bench", "--shape", shape, "--devices", "cpu=1GiB", "--peak-size", "16"]
    command += ["--statistics-tokens", "16", "--benchmark_filter=^matmul", "--benchmark_min_time=0.001", "--benchmark_format=json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)
    assert done.returncode == 0, done.stderr
    weights = 2 * vocab * width + width + layers * (2 * width + 4 * width**2 + 3 * width * ffn)
    assert json.loads(done.stdout)["context"]["room_bytes"] == f"cpu={2**30 - 4 * weights}"


def printed(*rows):
    return json.dumps({"context": {"date": "today"}, "benchmarks": list(rows)}, indent=2)


def ran(name, time_ms=1.0, **counters):
    return {"name": f"{name}/manual_time", "run_type": "iteration", "real_time": time_ms, "time_unit": "ms", **counters}


def test_benchmarks_that_were_ended_are_read_as_far_as_they_came():
    text = printed(ran("a", 1.5), ran("b"), ran("c"))
    cut = text[: text.index('"name": "c')]
    assert set(bench.parse_benchmarks("a line of the program\n" + text)["benchmarks"]) == {"a", "b", "c"}
    found = bench.parse_benchmarks(cut)["benchmarks"]
    assert set(found) == {"a", "b"} and found["a"]["real_time"] == 1.5
    with pytest.raises(ValueError, match="no benchmark"):
        bench.parse_benchmarks(text[:40])
    with pytest.raises(ValueError, match="b: out of memory"):
        bench.parse_benchmarks(printed(ran("a"), ran("b", error_occurred=True, error_message="out of memory")))


def outcomes_of(seconds_of_one):
    texts = {
        "values of 512": printed(ran("values/no_stop/requests:512", 18000.0, **{"edits/h": 102400.0})),
        "values of 1": printed(ran("values/no_stop/requests:1", 1000 * seconds_of_one)),
        "values of 1 as graphs": printed(ran("values/no_stop/requests:1", 250.0)),
        "solve": printed(ran("solve/requests:1000/n:14336", 900.0, solve_ms=150.0)),
    }
    return {f"bench/{name}": Outcome(f"bench/{name}", "", "ok", figures=bench.read(text)) for name, text in texts.items()}


@pytest.mark.parametrize(
    "devices, shape, expected",
    [
        (["cuda:0"], "", ["met", "missed", "not measured", "met"]),
        (["cuda:0"], "llama-3.2-1b", ["of another shape", "of another shape", "not measured", "of another shape"]),
    ],
)
def test_figures_are_judged_by_the_wishes(tmp_path, devices, shape, expected):
    settings = Settings("bench", devices, tmp_path, tmp_path, shape)
    rows = bench.wishes(settings, outcomes_of(0.7))
    assert [row["verdict"] for row in rows if row["wished"]] == expected
    assert [row["measured"] for row in rows] == ["102,400", "", "0.7 s", "0.25 s", "", "0.75 s", "4.5 s"]
    assert bench.wishes(settings, outcomes_of(0.3))[2]["verdict"] in ("met", "of another shape")


def test_a_load_is_judged_by_what_doctor_measured(tmp_path):
    settings = Settings("full", ["cuda:0"], tmp_path, tmp_path)
    settings.doctor = {"copies": [{"from": "cuda:0", "to": "cpu", "bytes_per_s": 1e9}, {"from": "cpu", "to": "cuda:0", "bytes_per_s": 50e9}]}
    loaded = Outcome("load", "", "ok", figures=full.read_load('{"bytes": 16000000000, "load_s": 0.5}'))
    planned = Outcome("plan", "", "ok", figures={"totals": {"cuda:0": 20e9}})
    edited = Outcome("edit", "", "ok", figures={"peak_bytes": {"cpu": 1, "cuda:0": 23e9}, "seconds": {"export": 8.0}})
    load, peak, export = full.wishes(settings, {"load": loaded, "plan": planned, "edit": edited})
    assert (load["measured"], load["verdict"]) == ("64 %", "met")
    assert "too little was estimated" in peak["verdict"] and export["verdict"] == "2.00 GB/s"
    assert full.wishes(settings, {})[0]["verdict"] == "not measured"


def test_full_wants_its_disk_before_it_begins(stand_in, tmp_path):
    (stand_in / "kit" / "full.py").write_text((stand_in / "kit" / "full.py").read_text().replace('"disk_gb": 0.2', '"disk_gb": 1e9'))
    done = run_kit(stand_in, "full", "--devices", "cpu", "--out", tmp_path / "out")
    assert done.returncode == 1
    _, steps = steps_of(tmp_path / "out")
    assert steps["disk"]["state"] == "failed" and "name another disk by TMPDIR" in steps["disk"]["stderr_tail"]
    assert {step["state"] for name, step in steps.items() if name not in ("doctor", "disk")} == {"skipped"}
