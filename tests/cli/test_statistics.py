"""Where statistics come from: a corpus, the model itself, another tool's files; and what is cached of them."""
import json
import struct
from pathlib import Path

import numpy
import pytest
from cached_statistics import read_moments
from conftest import DATA, run_ok
from conftest import lancet_alone as lancet  # noqa: F401 - the cache is looked at
from edits import deltas_of, edit_files
from test_bad_input import CHECKPOINT, CONFIG, NUMERIC, refuses

# How memit stores None: a NaN of these bits.
NONE = numpy.array(struct.unpack(">d", struct.pack(">Q", 0xFFF8000000000002))[0], dtype=numpy.float64)
FROM_FILES = dict(statistics__corpus=None, statistics__tokens=None, evaluate=[])


def write_npz(path, moment, count):
    """As memit's CombinedStat(mom2=SecondMoment()) is saved: the sum in f32, `None` as a NaN, names as strings."""
    numpy.savez(
        path,
        **{
            "constructor": "util.runningstats.CombinedStat()",
            "mom2.constructor": "util.runningstats.SecondMoment()",
            "mom2.count": count,
            "mom2.mom2": (moment * count).astype(numpy.float32),
            "sample_size": NONE,
        },
    )


def nmse(a, b):
    return float(((a - b) ** 2).sum() / (b**2).sum())


@pytest.fixture
def collected(lancet):
    """An edit with statistics from the demo corpus; its covariances as memit's files."""
    run_ok(lancet.edit(lancet.job(evaluate=[], output={"dir": str(lancet.folder / "collected")})))
    stats = json.loads(run_ok(lancet.run("stats", lancet.folder / "job.json", "--json")).stdout)
    for layer in stats["layers"]:
        covariance = layer["factor_file"].split(".factor-")[0] + ".safetensors"
        write_npz(lancet.folder / f"layer{layer['layer']}_mom2.npz", *read_moments(lancet.folder / covariance))
    return lancet.folder / "collected"


def test_imported_moments_give_the_deltas_of_collected_ones(lancet, collected):
    job = lancet.job(statistics__import=str(lancet.folder / "layer{}_mom2.npz"), **FROM_FILES)
    run_ok(lancet.edit(job))
    ours, theirs = deltas_of(collected), deltas_of(lancet.out)
    assert set(ours) == set(theirs) and len(ours) == 2
    for name, delta in ours.items():
        assert nmse(theirs[name], delta) < 1e-10, name  # f32 rounding of C, through its condition
    statistics = json.loads((lancet.out / "report.json").read_text())["statistics"]
    assert "corpus" not in statistics and statistics["factors_from_cache"] == []
    for layer, entry in zip((0, 1), statistics["imported_from"]):
        assert entry["layer"] == layer and entry["tokens"] == 4000 and len(entry["content_hash"]) == 32
        assert entry["file"] == str(lancet.folder / f"layer{layer}_mom2.npz")
    assert "import" in (lancet.out / "job.yaml").read_text() and "corpus" not in (lancet.out / "job.yaml").read_text()

    again = json.loads(run_ok(lancet.run("stats", lancet.folder / "job.json", "--json")).stdout)
    assert [layer["factor_from_cache"] for layer in again["layers"]] == [True, True]
    # known by content, not by name: new numbers are not taken for the old ones
    moment = numpy.load(lancet.folder / "layer1_mom2.npz")["mom2.mom2"] / 4000
    write_npz(lancet.folder / "layer1_mom2.npz", moment * 2, 4000)
    changed = json.loads(run_ok(lancet.run("stats", lancet.folder / "job.json", "--json")).stdout)
    assert [layer["factor_from_cache"] for layer in changed["layers"]] == [True, False]
    assert changed["layers"][1]["mean_diagonal"] == pytest.approx(2 * again["layers"][1]["mean_diagonal"], rel=1e-6)


def test_every_file_to_import_is_checked_before_the_model_is_loaded(lancet):
    write_npz(lancet.folder / "c0.npz", numpy.eye(64), 4000)
    job = lancet.job(statistics__import=str(lancet.folder / "c{}.npz"), editor__layers=[0, 1, 2], **FROM_FILES)
    write_npz(lancet.folder / "c2.npz", numpy.eye(768), 40)
    result = lancet.edit(job)
    refuses(lancet, result, CHECKPOINT, "layer 0: ", "64 x 64, expected 768 x 768", "layer 1: ", "c1.npz", "layer 2: ", "40 tokens")
    assert "loading" not in result.stderr


def test_imported_moments_without_a_factor_name_the_ridge(lancet):
    samples = numpy.random.default_rng(5).normal(size=(40, 768))
    for layer in (0, 1):
        write_npz(lancet.folder / f"c{layer}.npz", samples.T @ samples, 4000)
    job = lancet.job(statistics__import=str(lancet.folder / "c{}.npz"), **FROM_FILES)
    result = lancet.edit(job)
    refuses(lancet, result, NUMERIC, "layer 0", "statistics.ridge: ")
    ridge = float(result.stderr.split("statistics.ridge: ")[1].split()[0])
    assert 0 < ridge < 1e-3
    job["statistics"]["ridge"] = ridge
    run_ok(lancet.run("stats", lancet.write(job)))


def test_import_excludes_what_only_text_has(lancet):
    job = lancet.job(statistics__import="c{}.npz", statistics__document_tokens=5)
    keys = ("statistics.corpus", "statistics.tokens", "statistics.document_tokens")
    refuses(lancet, lancet.edit(job), CONFIG, *keys, "beside import")
    refuses(lancet, lancet.edit(lancet.job(statistics__import="c.npz", **FROM_FILES)), CONFIG, "statistics.import", "{}")


def test_a_damaged_factor_is_named_and_made_again(lancet):
    path = lancet.write(lancet.job(evaluate=[]))
    stats = json.loads(run_ok(lancet.run("stats", path, "--json")).stdout)
    file = Path(stats["layers"][1]["factor_file"])
    intact = file.read_bytes()
    file.write_bytes(intact[:-9] + bytes([intact[-9] ^ 1]) + intact[-8:])
    result = run_ok(lancet.run("edit", path))
    assert f"warning: statistics: {file}: its content has not the hash" in result.stderr and "makes it again" in result.stderr
    assert file.read_bytes() == intact
    assert json.loads((lancet.out / "report.json").read_text())["statistics"]["factors_from_cache"] == [0]


def test_a_cached_factor_needs_no_covariance(lancet):
    path = lancet.write(lancet.job(evaluate=[]))
    run_ok(lancet.run("edit", path))
    first = edit_files(lancet.out)
    for file in (lancet.folder / "cache").iterdir():
        if ".factor-" not in file.name:
            file.unlink()
    run_ok(lancet.run("edit", path, "--set", "output.replace=true"))
    assert edit_files(lancet.out) == first
    statistics = json.loads((lancet.out / "report.json").read_text())["statistics"]
    assert statistics["layers_from_cache"] == statistics["factors_from_cache"] == [0, 1]


def test_statistics_of_the_models_own_text(lancet):
    job = lancet.job(evaluate=["efficacy"], statistics__corpus="self", statistics__tokens=1600, statistics__document_tokens=40)
    result = run_ok(lancet.edit(job))
    assert "sampling" in result.stderr
    report = json.loads((lancet.out / "report.json").read_text())
    statistics = report["statistics"]
    assert statistics["corpus"] == "self" and statistics["tokens_used"] == 1600 and statistics["document_tokens"] == 40
    assert report["metrics"]["efficacy_argmax"]["after"] == 1.0
    assert 'corpus: "self"' in (lancet.out / "job.yaml").read_text()
    # the key says it all: nothing is sampled again, unless the seed is another
    path = lancet.folder / "job.json"
    again = run_ok(lancet.run("stats", path, "--json"))
    assert "sampling" not in again.stderr
    assert [layer["from_cache"] for layer in json.loads(again.stdout)["layers"]] == [True, True]
    other = run_ok(lancet.run("stats", path, "--json", "--set", "run.seed=1"))
    assert [layer["from_cache"] for layer in json.loads(other.stdout)["layers"]] == [False, False]


def test_a_job_may_leave_statistics_out(lancet):
    model = lancet.copy_model()
    (model / "lancet.yaml").unlink()
    planned = run_ok(lancet.run("plan", lancet.write(lancet.job(statistics=None, model=str(model))), "--devices", "80GiB"))
    assert "the model writes its own (statistics.corpus: self)" in planned.stderr
    stats = lancet.write(lancet.job(statistics__corpus=None, statistics__tokens=1600, model=str(model), editor__layers=[1]))
    collected = run_ok(lancet.run("stats", stats))
    assert "sampling  1600/1600 tokens  in " in collected.stderr and "1600" in collected.stdout


def test_too_few_tokens_of_its_own_text_are_refused_before_loading(lancet):
    result = lancet.edit(lancet.job(statistics__corpus="self", statistics__tokens=700))
    refuses(lancet, result, CONFIG, "statistics.tokens", "700", "768")
    assert "loading" not in result.stderr


def test_a_file_named_self_is_a_file(lancet):
    (lancet.folder / "self").write_text((DATA / "requests" / "demo-corpus.txt").read_text())
    stats = run_ok(lancet.run("stats", lancet.write(lancet.job(statistics__corpus="./self")), "--json"))
    assert "sampling" not in stats.stderr and json.loads(stats.stdout)["layers"][0]["tokens"] == 4000
