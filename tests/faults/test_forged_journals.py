"""Journals made on purpose: a journal's hashes have no key, so that anyone can make them again. What forges one is refused by name, or
read; the program neither crashes nor takes the machine with it. With LANCET_TEST_FULL=1 several hundred, otherwise a few of each kind."""
import copy
import ctypes
import ctypes.util
import json
import random
import resource
import shutil
import struct
import threading

import pytest
from conftest import DOCUMENTED, ENVIRONMENT, FULL, LANCET, LIMIT_S, Experiment, ProgramServer

ALLOWED = {0, 5} | DOCUMENTED  # 5: a forged edit may leave the model with numbers that are not finite
MORE_MEMORY = 2 * 10**9  # than the program has mapped when it starts


# ---- Journals with right hashes --------------------------------------------------------------------------------------------------


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash"))
_xxhash.XXH3_128bits.restype = Hash128
_xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def content_hash(*parts):
    data = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
    made = _xxhash.XXH3_128bits(data, len(data))
    return f"{made.high:016x}{made.low:016x}"


def entries_of(path):
    """All of a journal's, its end among them."""
    return [json.loads(line)["entry"] for line in path.read_text().splitlines()]


def journal_text(entries):
    text, parent = "", ""
    for entry in entries:
        line = f'{{"parent":"{parent}","entry":{entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False)}'
        parent = content_hash(b"lancet-journal", line.encode())
        text += f'{line},"hash":"{parent}"}}\n'
    return text


# ---- What is forged --------------------------------------------------------------------------------------------------------------

GONE = object()


def changed(entries, kind, place, value):
    """The first entry of the kind with another value at a place in it, or without it."""
    entries = copy.deepcopy(entries)
    *parents, key = place
    at = next(entry for entry in entries if entry["kind"] == kind)
    for parent in parents:
        at = at[parent]
    if value is GONE:
        del at[key]
    else:
        at[key] = value
    return entries


OUTCOME = ("report", "outcome")
ON_PURPOSE = {  # name -> (entry, place, value, words)
    "a column of none of the edits": ("batch", (*OUTCOME, "columns", 0), 10**9, "report.outcome.columns: expected a place among 2 edits"),
    "a column below the first": ("batch", (*OUTCOME, "columns", 0), -1, "report.outcome.columns[]: expected a whole number"),
    "no list of requests": ("batch", (*OUTCOME, "requests"), None, "report.outcome.requests[][0]: expected a list, got null"),
    "requests absent": ("batch", (*OUTCOME, "requests"), GONE, "report.outcome.requests[][0]: expected a value, got nothing"),
    "fewer requests than edits": ("batch", (*OUTCOME, "requests"), [], "report.outcome.requests: expected 2, as many as edits, got 0"),
    "another's shared keys": ("batch", (*OUTCOME, "shared_keys"), [["x", [[0, 10**12]]]], "report.outcome.shared_keys: expected a place"),
    "tallies that are none": ("batch", ("report", "right_after"), {"efficacy": 1}, "report.right_after{}[0]: expected a list, got 1"),
    "an empty report": ("batch", ("report",), {}, "report.seconds: expected a value, got nothing"),
    "a list for a report": ("batch", ("report",), [1], "report.seconds: expected a map, got [1]"),
    "a number for a job": ("setting", ("job",), "3", "job: expected a map, got 3"),
    "a word for a job": ("setting", ("job",), "word", "job: expected a map, got word"),
    "a list for a job": ("setting", ("job",), "[1, 2]", "job: expected a map, got [1, 2]"),
    "a number for a job's editor": ("setting", ("job",), "{editor: 3}", "job: editor: expected a section, got 3"),
    "a list for the editor": ("setting", ("editor",), "[memit]", "editor: expected a map, got [memit]"),
}


def any_value(old, generator):
    deep = old
    for _ in range(generator.choice([70, 500])):
        deep = [deep] if generator.random() < 0.5 else {"a": deep}
    return generator.choice([None, True, 0, -1, 10**9, -(2**63), 2**64 - 1, 1e300, 0.5, "", "x" * 100_000, "../../etc/passwd", "a\0b\n\x1b[2J",
                             [], {}, [old], {"a": old}, [old] * 1000, deep])  # fmt: skip


def other_lines(text, generator):
    """A document of YAML without one of its lines, or with another value there."""
    lines = text.splitlines()
    at = generator.randrange(len(lines))
    key, colon, _ = lines[at].partition(":")
    if colon and generator.random() < 0.7:
        lines[at] = f"{key}: {generator.choice(['3', '-1', 'null', '[]', '{}', 'word', '1e300', '[[[]]]', '99999999999999999999'])}"
    else:
        del lines[at]
    return "\n".join(lines) + "\n"


def places_in(value, at=()):
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places_in(inner, (*at, key))


def forged_anywhere(entries, generator):
    """One or two values anywhere, absent, twice or others; also within the texts that hold a document of their own."""
    entries = copy.deepcopy(entries)
    for _ in range(generator.choice([1, 1, 2])):
        number = generator.randrange(len(entries))
        places = [place for place in places_in(entries[number]) if place]
        *parents, key = generator.choice(places) if places else [0]
        at = entries[number]
        for parent in parents:
            at = at[parent]
        if not places:
            continue
        way = generator.random()
        if key in ("job", "editor") and way < 0.6 and isinstance(at[key], str):
            at[key] = other_lines(at[key], generator)
        elif way < 0.2:
            del at[key]
        elif way < 0.3 and isinstance(at, list):
            at.append(at[key])
        elif way < 0.35 and not parents and len(entries) > 1:
            entries.insert(number, copy.deepcopy(generator.choice(entries)))
        else:
            at[key] = any_value(at[key], generator)
    if isinstance(entries[-1], dict) and isinstance(entries[-1].get("entries"), int) and generator.random() < 0.7:
        entries[-1]["entries"] = len(entries) - 1
    return entries


# ---- Runs ------------------------------------------------------------------------------------------------------------------------

_servers = threading.local()
_all_servers = []


def limited_server():
    """This thread's: whatever it runs may map so much more memory than the program itself."""
    if not hasattr(_servers, "own"):
        server = _servers.own = ProgramServer(LANCET, ENVIRONMENT)
        _all_servers.append(server)
        server.run("/tmp", ["--version"])
        with open(f"/proc/{server.process.pid}/status") as status:
            mapped = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmSize"))
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (mapped + MORE_MEMORY,) * 2)
    return _servers.own


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Two outputs of one model, of four edits in two batches each."""

    def prepare(experiment, job):
        experiment.run_first({**job, "requests": {**job["requests"], "skip": 4}, "output": {"dir": "other"}})

    yield Experiment(tmp_path_factory.mktemp("forged"), prepare).reference
    for server in _all_servers:
        server.end()
    _all_servers.clear()
    _servers.__dict__.clear()


class Forger:
    """Runs commands on copies of an output whose journal is another."""

    def __init__(self, outputs, folder):
        self.whole, self.folder = outputs, folder
        self.entries = entries_of(outputs.out / "edits" / "journal.jsonl")
        last = [entry["edits"][-1]["request"]["id"] for entry in self.entries if entry["kind"] == "batch"][-1]
        self.commands = {"log": ["log", "out"], "apply": ["apply", "-q", "out", "--out", "again"],
                         "merge": ["merge", "-q", "out", str(outputs.place / "other"), "--prefer", "1", "--out", "both"],
                         "undo": ["undo", "-q", "out", "--edits", last, "--mode", "downdate", "--out", "less"]}  # fmt: skip

    def run(self, command, entries, number):
        """(exit code, stderr)"""
        place = self.folder / f"case-{number}"
        edits = place / "out" / "edits"
        edits.mkdir(parents=True)
        for name in ("changes", "solved"):
            (edits / name).symlink_to(self.whole.out / "edits" / name)
        shutil.copy(self.whole.out / "job.yaml", place / "out")
        (edits / "journal.jsonl").write_text(journal_text(entries), errors="surrogatepass")
        code, _, said = limited_server().run(place, self.commands[command], limit_s=LIMIT_S)
        shutil.rmtree(place)
        return code, said


@pytest.fixture
def forger(outputs, tmp_path):
    return Forger(outputs, tmp_path)


def test_hashes_are_made_as_lancet_makes_them(outputs):
    path = outputs.out / "edits" / "journal.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    texts = [line[line.index('"entry":') + 8 : line.rindex(',"hash":')] for line in path.read_text().splitlines()]
    assert journal_text(texts) == path.read_text() and lines[0]["parent"] == ""


@pytest.mark.parametrize("command", ["log", "apply", "merge", "undo"])
def test_the_same_journal_with_its_hashes_made_again_is_read(forger, command):
    code, said = forger.run(command, forger.entries, 0)
    assert code == 0 and "error: " not in said, said


@pytest.mark.parametrize("name", ON_PURPOSE)
def test_a_journal_forged_on_purpose_is_refused_by_its_line(forger, name):
    kind, place, value, words = ON_PURPOSE[name]
    for number, command in enumerate(forger.commands):
        code, said = forger.run(command, changed(forger.entries, kind, place, value), number)
        assert code == 3, f"{command}: {code}: {said[-1000:]}"
        assert "journal.jsonl: line " in said and words in said, f"{command}: {said[-1000:]}"


def test_a_journal_forged_at_random_is_refused_or_read(forger):
    seen, problems = {}, []
    for seed in range(400 if FULL else 24):
        entries = forged_anywhere(forger.entries, random.Random(seed))
        for command in forger.commands if FULL else [list(forger.commands)[seed % 4]]:
            code, said = forger.run(command, entries, f"{seed}-{command}")
            seen[code] = seen.get(code, 0) + 1
            if code not in ALLOWED or (code != 0 and "error: " not in said):
                problems.append(f"seed {seed}: {command}: {code}: {said[-500:]}")
    assert not problems, "\n".join(problems)
    assert any(code in (2, 3) for code in seen) and (not FULL or 0 in seen), seen
