"""A small stream of edits whose library calls can be made to fail (fault_library.cpp), and what must hold after any fault.

LANCET_TEST_FULL=1 (make test-full) takes every call; otherwise a seeded few of each kind."""
import concurrent.futures
import dataclasses
import hashlib
import importlib.util
import json
import os
import pathlib
import random
import re
import resource
import shutil
import struct
import subprocess
import threading
import time

import pytest

_spec = importlib.util.spec_from_file_location("cli_conftest", pathlib.Path(__file__).parents[1] / "cli" / "conftest.py")
_cli = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_cli)
LANCET, DATA, ProgramServer = _cli.LANCET, _cli.DATA, _cli.ProgramServer
FULL = bool(os.environ.get("LANCET_TEST_FULL"))

# What changes a disk, and what looks at one.
CHANGES = ["create", "write", "copy_file_range", "ftruncate", "fsync", "rename", "unlink", "rmdir", "mkdir"]
LOOKS = ["open", "read", "mmap", "stat", "opendir", "readdir"]
TRIES = ["ioctl", "sync_file_range", "flock"]  # that a file system need not have
DOCUMENTED = {2, 3, 4, 6}  # exit codes of what is the job's, the files' or the machine's fault
KILLED = -9

_figures = {}  # what was tried -> what came of it -> how often
_seconds = {}
_notes = []


def note(line):
    """A figure for the end of the session."""
    _notes.append(line)


def pytest_terminal_summary(terminalreporter):
    for line in _notes:
        terminalreporter.write_line(line)
    for tried, ends in _figures.items():
        terminalreporter.write_line(f"{tried}: {sum(ends.values())} ({', '.join(f'{n} {end}' for end, n in sorted(ends.items()))}), {_seconds[tried]:.0f} s")


def some(cases, few, kind=None):
    """All of them with LANCET_TEST_FULL (at most LANCET_TEST_CASES), else a few, each of another kind."""
    cases = list(cases)
    most = int(os.environ.get("LANCET_TEST_CASES", len(cases))) if FULL else few
    generator = random.Random(1)
    if len(cases) > most and kind:
        cases = list({kind(case): case for case in generator.sample(cases, len(cases))}.values())
    return cases if len(cases) <= most else sorted(generator.sample(cases, most))


def of_kind(call, path):
    """Calls of one kind are about files of one kind: names without the numbers and hashes in them."""
    return call, re.sub(r"[0-9a-f]{32}|\d+", "", path)


LIMIT_S = 120  # a run takes half a second
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}


_servers = threading.local()
_all_servers = []
_pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())


def _server():
    """This thread's."""
    if not hasattr(_servers, "own"):
        _servers.own = ProgramServer(LANCET, ENVIRONMENT)
        _all_servers.append(_servers.own)
    return _servers.own


def pytest_unconfigure(config):
    for server in _all_servers:
        server.end()


@dataclasses.dataclass
class Run:
    code: int
    said: str
    calls: list  # (name, path) of every call that counted


def write_model(folder, seed=1):
    """A Llama of three layers with the demo model's tokenizer and random weights: what is tested is not what it knows."""
    hidden, ffn, vocabulary, layers, kv = 32, 48, 4096, 3, 16
    folder.mkdir(parents=True)
    shutil.copy(DATA / "demo-model" / "tokenizer.json", folder)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary, "hidden_size": hidden,
              "intermediate_size": ffn, "num_hidden_layers": layers, "num_attention_heads": 4, "num_key_value_heads": 2,
              "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
              "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": [vocabulary, hidden], "model.norm.weight": [hidden]}
    for i in range(layers):
        matrices = {"self_attn.q_proj": [hidden, hidden], "self_attn.k_proj": [kv, hidden], "self_attn.v_proj": [kv, hidden],
                    "self_attn.o_proj": [hidden, hidden], "mlp.gate_proj": [ffn, hidden], "mlp.up_proj": [ffn, hidden],
                    "mlp.down_proj": [hidden, ffn], "input_layernorm": [hidden], "post_attention_layernorm": [hidden]}  # fmt: skip
        shapes |= {f"model.layers.{i}.{name}.weight": shape for name, shape in matrices.items()}
    generator, header, data = random.Random(seed), {"__metadata__": {"format": "pt"}}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [generator.gauss(0, 1.5 / shape[1] ** 0.5) if len(shape) > 1 else 1 + generator.gauss(0, 0.1) for _ in range(count)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *values)
    text = json.dumps(header)
    text += " " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text.encode() + data)


def names_below(folder):
    """Every file and folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def journal_without_times(path):
    """What a journal says, but for when, in how many seconds, where, and how values came about (some are taken from an interrupted
    run): those, and the hashes they are in, differ from run to run. A run that goes on elsewhere has a setting of its own there."""
    entries, settings = [], []
    for line in path.read_text().splitlines():
        entry = json.loads(re.sub(r"(/[\w.-]+)+/", "PLACE/", line))["entry"]
        if entry["kind"] == "batch":
            entry["report"]["outcome"].pop("values")
            entry["setting"] = settings[entry["setting"]]
        for timed in [entry, entry.get("report", {}), *entry.get("edits", [])]:
            for key in ("when", "seconds"):
                if isinstance(timed, dict):
                    timed.pop(key, None)
        if entry["kind"] == "setting":
            settings.append(entry)
        elif entry["kind"] != "end":
            entries.append(entry)
    return json.dumps(entries).encode()


def contents(folder):
    """What an output says, by file: pages, plots and the times of a report differ from run to run."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".safetensors", ".jsonl"):
            text = journal_without_times(path) if path.name == "journal.jsonl" else path.read_bytes()
            hashes[str(path.relative_to(folder))] = hashlib.sha256(text).hexdigest()
    return hashes


class Stream:
    """A folder with a model and a job of two batches of two facts, as often as it is wanted anew."""

    def __init__(self, template, place):
        self.template, self.place = template, place
        self.out = place / "out"

    def start_over(self):
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.template, self.place)
        self.before = contents(self.out) if self.out.exists() else None

    def run(self, calls=(), at=0, until=None, do=0, smallest=0, command=("edit", "job.json")):
        """The run at whose at-th call (to the until-th) something happens; without calls, one that nothing disturbs."""
        log = self.place.with_suffix(".log")
        log.unlink(missing_ok=True)
        faults = {"BELOW": self.place, "CALLS": ",".join(calls), "AT": at, "UNTIL": until or at, "DO": do, "BYTES": smallest, "LOG": log}
        variables = {f"LANCET_FAULTS_{name}": value for name, value in faults.items()}
        code, _, said = _server().run(self.place, command, variables, LIMIT_S)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return Run(code, said, [tuple(line.split(" ", 2)[1:]) for line in lines])

    def run_under(self, limit, value, command=("edit", "job.json")):
        """Under a limit of the system (resource.RLIMIT_...), as a process of its own."""
        result = subprocess.run([LANCET, *command], cwd=self.place, capture_output=True, text=True, errors="replace",
                                env=ENVIRONMENT, timeout=LIMIT_S, preexec_fn=lambda: resource.setrlimit(limit, (value, value)))  # fmt: skip
        return Run(result.returncode, result.stderr, [])


class Problem(Exception):
    """What should not have come of a fault."""


def require(holds, what):
    if not holds:
        raise Problem(what)


class Experiment:
    """A template, the run that nothing disturbs, and room for several at a time."""

    def __init__(self, root, prepare=None, **changes):
        self.root = root
        self.template = template = root / "template"
        write_model(template / "model")
        facts = json.loads((DATA / "requests" / "demo.json").read_text())[:8]
        (template / "requests.json").write_text(json.dumps(facts))
        lines = (DATA / "requests" / "demo-corpus.txt").read_text().splitlines(keepends=True)[:100]
        (template / "corpus.txt").write_text("".join(lines))
        job = {
            "model": "model",
            "requests": {"path": "requests.json", "limit": 4},
            "schedule": {"batch": 2},
            "editor": {"method": "memit", "layers": [0, 1], "history": True, "covariance_weight": 20, "contexts": ["{}"],
                       "values": {"steps": 2, "lr": 0.5, "clamp": 4.0}},
            "statistics": {"corpus": "corpus.txt", "tokens": 600, "cache": "cache", "save_every_s": 0},
            "evaluate": ["efficacy"],
            "run": {"devices": "cpu", "dtype": "f32", "threads": 1},
            "output": {"dir": "out", "replace": True},
            **changes,
        }  # fmt: skip
        (template / "job.json").write_text(json.dumps(job))
        if prepare:
            prepare(self, job)
        self.reference = self.stream(0)
        run = self.reference.run()
        assert run.code == 0, run.said
        self.expected, self.names = contents(self.reference.out), names_below(self.reference.place)
        assert "model.safetensors" in self.expected and any(name.startswith("edits/changes/") for name in self.expected)

    def stream(self, number):
        stream = Stream(self.root / "template", self.root / f"run-{number}")
        stream.start_over()
        return stream

    def calls(self, names):
        """Those of a run that nothing disturbs."""
        return self.stream(0).run(names).calls

    def run_first(self, job):
        """Another job in the template: what it leaves is there from the beginning."""
        (self.template / "first.json").write_text(json.dumps(job))
        subprocess.run([LANCET, "edit", "-q", "first.json"], cwd=self.template, env=ENVIRONMENT, check=True, capture_output=True)

    def interrupt(self, call, pattern, last=False):
        """Kills the template's run in front of the first (or last) such call about such a path."""
        found = [at for at, (name, path) in enumerate(self.calls(CHANGES), 1) if name == call and re.search(pattern, path)]
        run = Stream(None, self.template).run(CHANGES, found[-1 if last else 0], do="kill")
        assert run.code == KILLED, run.said

    def is_expected(self, stream):
        return contents(stream.out) == self.expected

    def expect_whole(self, stream):
        """The output is as before, or all there."""
        if not stream.out.exists():
            require(stream.before is None, "the earlier output is gone")
        elif contents(stream.out) != stream.before:
            require(contents(stream.out) == self.expected and (stream.out / "report.json").exists(), "a half-written output")

    def expect_next_run_mends(self, stream, may_stay=None):
        """`may_stay`: a pattern of names that the first run had no way to remove."""
        run = stream.run()
        require(run.code == 0, f"the next run ended with {run.code}: {run.said[-600:]}")
        require(contents(stream.out) == self.expected, "the next run made another model")
        left = sorted(set(names_below(stream.place)) ^ set(self.names))
        left = [name for name in left if not (may_stay and re.fullmatch(may_stay, name))]
        require(not left, f"left behind, or missing: {left}")
        return run

    def expect_documented(self, stream, run):
        """A failure that says what and where, or none at all with the right model."""
        if run.code == 0:
            require(contents(stream.out) == self.expected, f"exit 0 with another model: {run.said[-300:]}")
            return "done"
        require(run.code in DOCUMENTED, f"exit code {run.code}: {run.said[-600:]}")
        require("error: " in run.said, f"no message: {run.said[-300:]}")
        self.expect_whole(stream)
        return f"exit {run.code}"

    def try_all(self, what, cases, attempt):
        """attempt(stream, case) of every case, beside each other; says what came of it."""
        begun = time.monotonic()
        ends = _figures.setdefault(what, {})

        def one(case, number):
            stream = self.stream(number)
            try:
                return attempt(stream, case), None
            except Problem as problem:
                return "wrong", f"{case}: {problem}"
            finally:
                shutil.rmtree(stream.place, ignore_errors=True)

        problems = []
        for end, problem in _pool.map(one, cases, range(1, len(cases) + 1)):
            ends[end] = ends.get(end, 0) + 1
            if problem:
                problems.append(problem)
        _seconds[what] = _seconds.get(what, 0) + time.monotonic() - begun
        if problems:
            pytest.fail("\n".join([f"{len(problems)} of {len(cases)}:", *problems[: 200 if FULL else 10]]), pytrace=False)


def names_a_path(said, stream):
    return any(word.startswith((str(stream.place), "out", "cache", "model", "job.json", "requests.json", "corpus.txt")) for word in re.split(r"[\s'\",;]+", said))


@pytest.fixture(scope="session")
def fresh(tmp_path_factory):
    """Nothing is there yet: statistics are collected, values found, an output made."""
    return Experiment(tmp_path_factory.mktemp("fresh"))


@pytest.fixture(scope="session")
def again(tmp_path_factory):
    """Statistics are cached, and an output of another job stands where the new one goes."""

    def prepare(experiment, job):
        experiment.run_first({**job, "requests": {**job["requests"], "skip": 4}})

    return Experiment(tmp_path_factory.mktemp("again"), prepare)
