"""Two processes that hold one model together: what they write, what each reads, and how they end."""
import json
import signal
import struct
import time

from conftest import DATA


def layer_job(lancet, **changes):
    """Edits layers that lie on both ranks. Bits are those of a number of threads, which the launcher shares out."""
    return lancet.small_job(**{"editor__layers": [1, 6], "evaluate": ["efficacy", "generation"], "run__threads": 1, **changes})


def bytes_of_layers(begin, end, outside=False):
    """Of the demo model's file."""
    with (DATA / "demo-model" / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    total = 0
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        parts = name.split(".")
        is_taken = begin <= int(parts[2]) < end if parts[1] == "layers" else outside
        total += (tensor["data_offsets"][1] - tensor["data_offsets"][0]) * is_taken
    return total


def megabytes(count):
    return -(-count // 1_000_000)


def test_two_ranks_write_what_one_does_and_read_their_own_layers(lancet):
    code, _, err = lancet.finish(lancet.launch(layer_job(lancet, run__ranks_per_model=2), ranks=2))
    assert code == 0, err + lancet.log(1)
    shared = (lancet.out / "model.safetensors").read_bytes()
    devices = json.loads((lancet.out / "report.json").read_text())["run"]["devices"]
    first = int(devices.split("rank 1: layers ")[1].split("-")[0])
    assert devices == f"cpu: layers 0-{first - 1}, rank 1: layers {first}-7" and 1 < first <= 6
    own, other = bytes_of_layers(0, first, outside=True), bytes_of_layers(first, 8)
    assert f"loading cpu  {megabytes(own)}/{megabytes(own)} MB" in lancet.log(0)
    assert f"loading cpu  {megabytes(other)}/{megabytes(other)} MB" in lancet.log(1)
    lancet.start_over()
    result = lancet.edit(layer_job(lancet))
    assert result.returncode == 0, result.stderr
    assert (lancet.out / "model.safetensors").read_bytes() == shared


def test_a_rank_that_is_killed_while_it_computes_is_named(lancet):
    job = layer_job(lancet, run__ranks_per_model=2, editor__values__steps=5000, editor__values__stop_loss=0)
    process = lancet.launch(job, ranks=2)
    lancet.wait_for_log(0, "evaluate before  ")
    begun = time.monotonic()
    lancet.processes.send(1, signal.SIGKILL)
    code, _, err = lancet.finish(process, 30)
    assert code == 6 and time.monotonic() - begun < 10
    assert "rank 1 on" in err and "stage 'layers': ended by signal 9 (Killed)" in err, err
    assert lancet.processes.alive() == [] and not lancet.out.exists()


def test_what_fails_on_rank_0_ends_the_others(lancet):
    job = layer_job(lancet, run__ranks_per_model=2)
    code, _, err = lancet.finish(lancet.launch(job, ranks=2, LANCET_FAULT="rank=0,stage=evaluate before,do=throw"), 60)
    assert code == 5 and "LANCET_FAULT asked for this failure" in err, err
    assert "rank 0 on" in lancet.log(1) and lancet.processes.alive() == []


def test_other_numbers_of_ranks_are_refused(lancet):
    job = lancet.small_job(run__ranks_per_model=2)
    alone = lancet.edit(job)
    assert alone.returncode == 2 and "run.ranks_per_model: 2: expected 1, or as many as there are processes, got 1: `lancet launch -n 2 -- ...` starts them" in alone.stderr
    closed = lancet.run("tune", lancet.write(lancet.small_job(run__ranks_per_model=2, tune={"search": {"values.lr": [0.1, 0.2]}})))
    assert closed.returncode == 2 and "run.ranks_per_model: 2: expected 1 (--set run.ranks_per_model=1): only edit, eval, stats and compare of `lancet launch -n 2 -- ...` spread a model" in closed.stderr
