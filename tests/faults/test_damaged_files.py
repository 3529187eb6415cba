"""A file is damaged between two runs. One that lancet wrote for itself is refused by name, or made again: the model's bytes are those of
a run that nothing disturbed. One that a user gave is read or refused by name. Neither ends in a crash, code 70, or never."""
import gzip
import json
import random

import numpy
import pytest
import torch
from conftest import DOCUMENTED, Experiment, require, some

PAGE = 4096
CASES = 1000


def flip_bit(data, generator):
    at = place(data, generator)
    return data[:at] + bytes([data[at] ^ (1 << generator.randrange(8))]) + data[at + 1 :]


def set_byte(data, generator):
    at = place(data, generator)
    return data[:at] + bytes([generator.randrange(256)]) + data[at + 1 :]


def zero_page(data, generator):
    at = generator.randrange(len(data)) // PAGE * PAGE
    page = data[at : at + PAGE]
    return data[:at] + bytes(len(page)) + data[at + PAGE :]


def cut(data, generator):
    return data[: generator.randrange(len(data))]


def lengthen(data, generator):
    return data + generator.randbytes(generator.randrange(1, 64))


def take_out(data, generator):
    at = place(data, generator)
    return data[:at] + data[at + generator.randrange(1, 9) :]


def put_in(data, generator):
    at = place(data, generator)
    return data[:at] + generator.choice([b"0", b"-1", b"9" * 19, b"{", b"]", b'"', b"\\", b"\xff", b"\0", b"1e999", b"[" * 3000]) + data[at:]


def exchange(data, generator):
    size = max(1, min(64, len(data) // 4))
    first, second = sorted(generator.randrange(len(data) - size + 1) for _ in range(2))
    if second < first + size:
        return data
    return data[:first] + data[second : second + size] + data[first + size : second] + data[first : first + size] + data[second + size :]


def place(data, generator):
    """Half of the time where headers are."""
    return generator.randrange(min(len(data), 1500) if generator.random() < 0.5 else len(data))


WAYS = [flip_bit, set_byte, zero_page, cut, lengthen, take_out, put_in, exchange]


def damaged(data, seed, others):
    """Other bytes, and how they were made."""
    generator = random.Random(seed)
    if others and seed % 10 == 0:
        return "swapped", generator.choice(others)
    while True:
        way = generator.choice(WAYS)
        if (result := way(data, generator)) != data:
            return way.__name__, result


def files_of(stream, pattern):
    found = sorted(path for path in stream.place.glob(pattern) if ".factor-" in pattern or ".factor-" not in path.name)
    assert found, pattern
    return found


def damage(stream, pattern, seed):
    """One of the files; (path, how)."""
    files = files_of(stream, pattern)
    path = files[seed % len(files)]
    how, data = damaged(path.read_bytes(), seed, [other.read_bytes() for other in files if other != path])
    path.write_bytes(data)
    return path, how


# ---- What lancet wrote -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def interrupted(tmp_path_factory):
    """Killed after the last values: they, the progress before them, and the statistics' factors are read."""
    return Experiment(tmp_path_factory.mktemp("interrupted"), lambda experiment, job: experiment.interrupt("mkdir", r"/\.progress[^/]*$", last=True))


@pytest.fixture(scope="session")
def summed(tmp_path_factory):
    """Killed after the statistics pass, before its results are in the cache."""
    return Experiment(tmp_path_factory.mktemp("summed"), lambda experiment, job: experiment.interrupt("rename", r"cache/[0-9a-f]+\.safetensors"))


@pytest.fixture(scope="session")
def collected(tmp_path_factory):
    """Covariances are cached, their factors are not."""

    def prepare(experiment, job):
        experiment.run_first({**job, "output": {"dir": "first"}})
        for factor in (experiment.template / "cache").glob("*.factor-*"):
            factor.unlink()

    return Experiment(tmp_path_factory.mktemp("collected"), prepare)


@pytest.fixture(scope="session")
def projected(tmp_path_factory):
    """AlphaEdit's null spaces are cached."""
    editor = {"method": "alphaedit", "layers": [0, 1], "contexts": ["{}"], "null_space_below": 0.9, "values": {"steps": 2, "lr": 0.5, "clamp": 4.0}}
    return Experiment(tmp_path_factory.mktemp("projected"), lambda experiment, job: experiment.run_first({**job, "output": {"dir": "first"}}), editor=editor)


@pytest.fixture(scope="session")
def continued(tmp_path_factory):
    """The job goes on from an earlier output."""

    def prepare(experiment, job):
        first = {**job, "requests": {"path": "requests.json", "skip": 4}, "output": {"dir": "first"}}
        first.pop("continue_from")
        experiment.run_first(first)

    return Experiment(tmp_path_factory.mktemp("continued"), prepare, continue_from="first")


WRITTEN = [
    ("values", "interrupted", "out.unfinished/*.safetensors"),
    ("journal of a progress", "interrupted", "out.unfinished/progress/journal.jsonl"),
    ("changes of a progress", "interrupted", "out.unfinished/progress/changes/*.safetensors"),
    ("solved systems of a progress", "interrupted", "out.unfinished/progress/solved/*.safetensors"),
    ("progress.json", "interrupted", "out.unfinished/progress/progress.json"),
    ("factors", "interrupted", "cache/*.factor-*.safetensors"),
    ("covariances", "collected", "cache/*.safetensors"),
    ("partial sums", "summed", "cache/*.partial.safetensors"),
    ("null spaces", "projected", "cache/*.null-space-*.safetensors"),
    ("journal to go on from", "continued", "first/edits/journal.jsonl"),
    ("changes to go on from", "continued", "first/edits/changes/*.safetensors"),
    ("solved systems to go on from", "continued", "first/edits/solved/*.safetensors"),
    ("requests to go on from", "continued", "first/requests.jsonl"),
    ("report to go on from", "continued", "first/report.json"),
]


@pytest.mark.parametrize(("kind", "name", "pattern"), WRITTEN, ids=[kind for kind, _, _ in WRITTEN])
def test_what_lancet_wrote_is_checked_when_it_is_read(request, kind, name, pattern):
    experiment = request.getfixturevalue(name)

    def attempt(stream, seed):
        path, how = damage(stream, pattern, seed)
        run = stream.run()
        if run.code == 0:
            require(experiment.is_expected(stream), f"{how}: exit 0 with another model: {run.said[-300:]}")
            return "made again or as before"
        require(run.code in DOCUMENTED, f"{how}: exit code {run.code}: {run.said[-300:]}")
        require(path.name in run.said, f"{how}: does not name {path.name}: {run.said[-300:]}")
        experiment.expect_whole(stream)
        if name != "continued":
            path.unlink()
            experiment.expect_next_run_mends(stream)
        return f"refused, exit {run.code}"

    experiment.try_all(f"damaged: {kind}", some(range(CASES), 4), attempt)


# ---- What a user gave ------------------------------------------------------------------------------------------------------------


def write_moments(folder, size):
    sample = numpy.random.default_rng(1).standard_normal((1000, size)).astype(numpy.float32)
    for layer in (0, 1):
        moments = {"mom2.mom2": sample.T @ sample, "mom2.count": numpy.array(1000), "mom2.constructor": numpy.array("x")}
        numpy.savez(folder / f"layer-{layer}.npz", **moments)


def write_projections(folder, size):
    basis, _ = numpy.linalg.qr(numpy.random.default_rng(2).standard_normal((size, size // 2)))
    torch.save(torch.tensor(numpy.stack([basis @ basis.T] * 2)).float(), folder / "projections.pt")


GIVEN = [
    ("weights", "model/model.safetensors", {}),
    ("config.json", "model/config.json", {}),
    ("tokenizer.json", "model/tokenizer.json", {}),
    ("requests as JSON", "requests.json", {}),
    ("requests as CSV", "requests.csv", {"requests": {"path": "requests.csv"}}),
    ("requests as lines", "requests.jsonl", {"requests": {"path": "requests.jsonl"}}),
    ("corpora of text", "corpus.txt", {}),
    ("corpora of lines", "corpus.jsonl", {"statistics": {"corpus": "corpus.jsonl", "tokens": 600, "cache": "cache"}}),
    ("compressed corpora", "corpus.txt.gz", {"statistics": {"corpus": "corpus.txt.gz", "tokens": 600, "cache": "cache"}}),
    ("job files", "job.json", {}),
    ("moments of .npz", "layer-0.npz", {"statistics": {"import": "layer-{}.npz"}}),
    ("projections of .pt", "projections.pt",
     {"editor": {"method": "alphaedit", "layers": [0, 1], "contexts": ["{}"], "values": {"steps": 2}}, "statistics": {"import_null_space": "projections.pt"}}),
]  # fmt: skip


def write_given(folder):
    lines = (folder / "corpus.txt").read_text().splitlines()
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    (folder / "corpus.txt.gz").write_bytes(gzip.compress((folder / "corpus.txt").read_bytes(), mtime=0))
    records = [{"prompt": "{} was born in", "subject": f"Person {i}", "target": "Rome"} for i in range(4)]
    (folder / "requests.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "requests.csv").write_text("".join(",".join(row) + "\n" for row in [records[0], *(record.values() for record in records)]))
    write_moments(folder, 48)
    write_projections(folder, 48)


@pytest.mark.parametrize(("kind", "name", "changes"), GIVEN, ids=[kind for kind, _, _ in GIVEN])
def test_what_a_user_gave_is_read_or_refused_by_name(tmp_path, kind, name, changes):
    experiment = Experiment(tmp_path, lambda experiment, job: write_given(experiment.template), **changes)

    def attempt(stream, seed):
        path, how = damage(stream, name, seed)
        run = stream.run()
        require(run.code == 0 or run.code in DOCUMENTED | {5}, f"{how}: exit code {run.code}: {run.said[-300:]}")
        if run.code == 0:
            return "read"
        require("error: " in run.said, f"{how}: no message: {run.said[-300:]}")
        # its name, its folder's (tensors that do not fit together), or a path below it that a damaged text names; devices are looked
        # for once a job has been read, and then its key is named
        require(run.code == 5 or any(name in run.said for name in (path.name, str(path.parent), "request", "run.devices: ")),
                f"{how}: does not name {path.name}: {run.said[-300:]}")  # fmt: skip
        return f"refused, exit {run.code}"

    experiment.try_all(f"damaged: {kind}", some(range(CASES), 4), attempt)
