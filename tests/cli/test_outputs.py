"""What a run writes to and what it takes away: nothing that is not lancet's own, and nothing half-written."""
import fcntl
import json
import shutil
import subprocess
import time

import pytest
from conftest import DATA, LANCET

CONFIG, CHECKPOINT = 2, 3
QUICK = {"evaluate": [], "requests__limit": 1, "editor__values__steps": 2}
SLOW_VALUES = {"editor__values": {"steps": 60, "lr": 0.5, "clamp": 4.0, "stop_loss": 0, "batch": 1},
               "requests__limit": 5, "run__threads": 1, "evaluate": []}  # fmt: skip


def refused(lancet, result, code, *words):
    """Says all words, and leaves nothing behind."""
    assert result.returncode == code, result.stderr
    for word in words:
        assert word in result.stderr, f"{word} is not in: {result.stderr}"
    assert [p.name for p in lancet.folder.iterdir() if p.name.startswith(".")] == []


def replacing(lancet, **changes):
    return lancet.job(**QUICK, output={"dir": str(lancet.out), "replace": True}, **changes)


def test_only_what_lancet_wrote_is_replaced(lancet):
    assert lancet.edit(replacing(lancet)).returncode == 0
    written = {str(p.relative_to(lancet.out)) for p in lancet.out.rglob("*") if p.is_file()}
    manifest = json.loads((lancet.out / "lancet-manifest.json").read_text())
    assert set(manifest["files"]) == written - {"lancet-manifest.json"}

    (lancet.out / "thesis.txt").write_text("years of work")
    shutil.copy(DATA / "requests" / "demo.json", lancet.out / "my-requests.json")  # the job's own, put there
    (lancet.out / ".git").mkdir()
    result = lancet.edit(replacing(lancet, requests__path=str(lancet.out / "my-requests.json")))
    refused(lancet, result, CONFIG, str(lancet.out), "got .git/, my-requests.json, thesis.txt too", "does not delete")
    assert (lancet.out / "thesis.txt").read_text() == "years of work" and "load" not in result.stderr

    for foreign in ("thesis.txt", "my-requests.json"):
        (lancet.out / foreign).unlink()
    (lancet.out / ".git").rmdir()
    assert lancet.run("report", lancet.out).returncode == 0
    assert lancet.edit(replacing(lancet)).returncode == 0
    assert [p.name for p in lancet.folder.iterdir() if "lancet" in p.name] == []


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("name", ["out.unfinished", "out.rejected"])
def test_folders_beside_the_output_are_looked_at_too(lancet, name, replace):
    foreign = lancet.folder / name / "report.json"
    foreign.parent.mkdir()
    foreign.write_text('{"mine": 1}')
    result = lancet.edit(lancet.job(**QUICK, output={"dir": str(lancet.out), "replace": replace}))
    refused(lancet, result, CONFIG, str(foreign.parent), "report.json")
    assert foreign.read_text() == '{"mine": 1}' and not lancet.out.exists()


@pytest.mark.parametrize("replace", [True, False])
def test_the_models_own_folder_is_no_output(lancet, replace):
    model = lancet.copy_model()
    result = lancet.edit(lancet.job(**QUICK, model=str(model), output={"dir": str(model), "replace": replace}))
    refused(lancet, result, CONFIG, "overlaps the model folder")
    assert "remove" not in result.stderr and (model / "model.safetensors").exists()


@pytest.mark.parametrize("place", ["out/cache", "out.unfinished", "out.rejected/cache"])
def test_a_cache_in_a_folder_that_goes_away(lancet, place):
    result = lancet.edit(replacing(lancet, statistics__cache=str(lancet.folder / place)))
    refused(lancet, result, CONFIG, "statistics.cache", place, "choose another folder")


@pytest.mark.parametrize("folder", ["/proc/out", "/sys/out", "/proc/self/out"])
def test_an_output_where_nothing_can_be_written(lancet, folder):
    result = lancet.edit(lancet.job(**QUICK, output={"dir": folder}))
    # CONFIG where the folder's permissions tell it before the work
    refused(lancet, result, CONFIG if result.returncode == CONFIG else CHECKPOINT, "cannot ", folder[:5])


def test_a_cache_that_cannot_be_written_is_found_before_the_pass(lancet):
    result = lancet.edit(lancet.job(**QUICK, statistics__cache="/proc/cache"))
    refused(lancet, result, CHECKPOINT, "statistics.cache: /proc/cache: cannot make the folder")
    assert "tokens" not in result.stderr and not lancet.out.exists()


def test_the_second_of_two_runs_knows_at_once(lancet):
    lock = lancet.folder / ".out.lancet-lock"
    lock.write_text("process 7 on elsewhere")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        result = lancet.edit(lancet.job(**QUICK))
    assert result.returncode == CONFIG and "process 7 on elsewhere" in result.stderr and "load" not in result.stderr
    assert lancet.edit(lancet.job(**QUICK)).returncode == 0  # it was killed: its lock went with it
    assert not lock.exists()


def test_a_tokenizer_that_cannot_be_read(lancet):
    model = lancet.copy_model()
    (model / "tokenizer.json").unlink()
    (model / "tokenizer.json").mkdir()
    refused(lancet, lancet.edit(lancet.job(model=str(model))), CHECKPOINT, "tokenizer.json", "a folder")


def test_requests_beyond_the_models_positions(lancet):
    model = lancet.copy_model()
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 4}))
    result = lancet.edit(lancet.job(**{**QUICK, "requests__limit": 9}, model=str(model)))
    refused(lancet, result, CONFIG, "the model's 4 positions", "max_position_embeddings", "tokens", "and 4 more")


def test_a_model_that_is_written_over_during_the_run(lancet):
    model = lancet.copy_model()
    job = lancet.write(lancet.job(**SLOW_VALUES, model=str(model)))
    process = subprocess.Popen([LANCET, "edit", job], stderr=subprocess.PIPE, cwd=lancet.folder, text=True)
    while process.poll() is None and not list((lancet.folder / "out.unfinished").glob("[0-9a-f]*.safetensors")):
        time.sleep(0.005)
    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (model / "model.safetensors").write_bytes(weights)  # into the same file, as cp does
    error = process.communicate(timeout=120)[1]
    refused_words = ["model.safetensors", "written to since", "start again"]
    assert process.returncode == CHECKPOINT and all(word in error for word in refused_words), error
    assert not lancet.out.exists() and list((lancet.folder / "out.unfinished").glob("[0-9a-f]*.safetensors"))


def on_small_disk(lancet, options, job):
    """Runs the job with its output on a file system of its own; what it leaves there is the last line of stdout."""
    disk = lancet.folder / "disk"
    disk.mkdir(exist_ok=True)
    script = f"mount -t tmpfs -o {options} none {disk} && {{ {LANCET} edit {lancet.write(job)}; code=$?; echo; ls -A {disk} | tr '\\n' ' '; exit $code; }}"
    return subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, cwd=lancet.folder, timeout=300)


@pytest.fixture
def small_disks(tmp_path):
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", tmp_path], capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")


# no room for the weights; no entries for the lock, for what is unfinished, for the model's files, for edits/
@pytest.mark.parametrize("options", ["size=8m", "nr_inodes=1", "nr_inodes=3", "nr_inodes=8", "nr_inodes=12"])
def test_a_full_disk_is_the_machines(lancet, small_disks, options):
    result = on_small_disk(lancet, options, lancet.job(**QUICK, output={"dir": str(lancet.folder / "disk" / "out")}))
    assert result.returncode == CHECKPOINT, result.stderr
    assert "No space left on device" in result.stderr and "free some space" in result.stderr
    assert result.stdout.splitlines()[-1].strip() in ("", "out.unfinished"), result.stdout
