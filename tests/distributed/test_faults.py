"""A rank fails, is killed or stalls, in every stage: everybody ends in time, with the right codes and words, nothing is half-written,
and the next run succeeds."""
import re
import signal
import time

import pytest
from conftest import TIMEOUT_S

GRACE_S = 5
RANKS = 3
# what is done to the rank -> the launcher's exit code, what is said of it, seconds until it is noticed
FAULTS = {
    "throw": (5, r"failed: LANCET_FAULT asked for this failure", 0),
    "kill": (6, r"ended by signal 9 \(Killed\)", 0),
    "stall": (6, rf"made no progress for {TIMEOUT_S} s", TIMEOUT_S),
}


def expect_end(lancet, do, rank, stage, last_stage):
    code, words, delay_s = FAULTS[do]
    arguments = []
    if do == "stall" and stage == "parse":  # the job's timeout is not known yet
        words, delay_s, arguments = "made no progress for 20 s", 20, ["--join-timeout", 20]
    process = lancet.launch(lancet.small_job(), LANCET_FAULT=f"rank={rank},stage={stage},do={do}", ranks=RANKS, arguments=arguments)
    lancet.wait_for_log(rank, f"LANCET_FAULT: {do} in stage")
    begun = time.monotonic()
    returncode, _, err = lancet.finish(process, delay_s + 60)
    took = time.monotonic() - begun
    case = f"{do} of rank {rank} in {stage}: after {took:.1f} s: {err}"
    assert lancet.processes.alive() == [], case
    assert returncode == code, case
    assert took < delay_s + GRACE_S, case
    said = rf"rank {rank} on \S+, stage '{re.escape(stage)}': {words}"
    assert re.search(rf"lancet launch: error: {said}", err), case
    if rank != 0:  # rank 0 lives and says so too, and so do the other survivors in their logs
        assert re.search(rf"^lancet: error: {said}", err, re.M), case
    survivor = 1
    assert re.search(rf"lancet \(rank {survivor}\): error: {said}", lancet.log(survivor)), case + lancet.log(survivor)
    if stage == last_stage and rank != 0 and lancet.out.exists():  # rank 0 was done by then
        assert (lancet.out / "report.json").exists() and lancet.run("inspect", lancet.out).returncode == 0, case
        lancet.remove_output()
    assert not lancet.out.exists(), case
    return case


def expect_next_run_succeeds(lancet, case):
    result = lancet.edit(lancet.small_job())
    assert result.returncode == 0, case + result.stderr
    assert (lancet.out / "report.json").exists() and lancet.leftovers() == [], case


@pytest.mark.parametrize(("do", "rank"), [("throw", RANKS - 1), ("kill", 0), ("kill", RANKS - 1), ("stall", RANKS - 1)])
def test_a_fault_in_the_middle_ends_all(lancet, stages, do, rank):
    case = expect_end(lancet, do, rank, stages[len(stages) // 2], stages[-1])
    expect_next_run_succeeds(lancet, case)


@pytest.mark.full
@pytest.mark.parametrize("rank", [0, RANKS - 1])
@pytest.mark.parametrize("do", FAULTS)
def test_a_fault_in_any_stage_ends_all(lancet, stages, do, rank):
    assert len(stages) >= 6
    for stage in stages:
        case = expect_end(lancet, do, rank, stage, stages[-1])
        expect_next_run_succeeds(lancet, case)
        lancet.start_over()


def test_ctrl_c_ends_all(lancet, stages):
    process = lancet.launch(lancet.small_job(run__timeout_s=600), LANCET_FAULT=f"rank=1,stage={stages[-1]},do=stall")
    lancet.wait_for_log(1, "LANCET_FAULT: stall")
    assert len(lancet.processes.alive()) == 1 + RANKS
    process.send_signal(signal.SIGINT)
    returncode, _, err = lancet.finish(process, 10)
    assert returncode == -signal.SIGINT, "a shell shows 130"
    assert err.count("stopped by SIGINT (Ctrl-C)") == 1 and err.count("stopped") == 1, err
    assert re.search(r"^lancet: error: stopped by SIGINT \(Ctrl-C\); what was finished is kept \(.*out\.unfinished", err, re.M), err
    assert lancet.processes.alive() == [] and not lancet.out.exists()


def test_no_rank_outlives_a_killed_launcher(lancet, stages):
    process = lancet.launch(lancet.small_job(run__timeout_s=600), LANCET_FAULT=f"rank=1,stage={stages[-1]},do=stall")
    lancet.wait_for_log(1, "LANCET_FAULT: stall")
    process.kill()
    assert lancet.processes.wait_until_gone(2) == []


def test_a_stopped_rank_is_named(lancet, stages):
    process = lancet.launch(lancet.small_job(), LANCET_FAULT=f"rank=1,stage={stages[2]},do=stall")
    lancet.wait_for_log(1, "LANCET_FAULT: stall")
    begun = time.monotonic()
    lancet.processes.send(1, signal.SIGSTOP)
    returncode, _, err = lancet.finish(process, 60)
    assert returncode == 6 and lancet.processes.alive() == []
    assert time.monotonic() - begun < TIMEOUT_S + GRACE_S
    assert re.search(rf"rank 1 on \S+, stage '{stages[2]}': has not been heard of for", err), err


def test_a_fault_that_is_none_is_refused(lancet):
    returncode, _, err = lancet.finish(lancet.launch(lancet.small_job(), LANCET_FAULT="rank=1"))
    assert returncode == 2 and "LANCET_FAULT: 'rank=1': expected rank=R,stage=NAME" in err
