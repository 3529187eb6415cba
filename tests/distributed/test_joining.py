"""How ranks find each other: what launchers set, who is missing, who serves the store."""
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import DATA, LANCET, TIMEOUT_S, Processes, RankedLancet
from ports import free_port


def by_hand(rank, size, port, **changes):
    """Variables as a user sets them, without a launcher: rank 0 serves the store."""
    return {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port, **changes}  # fmt: skip


def report_of(lancet):
    report = json.loads((lancet.out / "report.json").read_text())
    return {"metrics": report["metrics"], "requests": [(r["id"], r["metrics"]) for r in report["requests"]]}


@pytest.fixture(scope="module")
def one_process_report(tmp_path_factory):
    alone = RankedLancet(tmp_path_factory.mktemp("alone"), Processes())
    result = alone.edit(alone.small_job())
    assert result.returncode == 0, result.stderr
    return report_of(alone)


def test_launch_gives_the_report_of_one_process(lancet, one_process_report):
    returncode, out, err = lancet.finish(lancet.launch(lancet.small_job()))
    assert returncode == 0, err
    assert report_of(lancet) == one_process_report
    assert "efficacy_prob" in out and out.count("written: ") == 1
    assert "efficacy_prob" in lancet.log(0), "rank 0's log has what the terminal has"
    assert "efficacy_prob" not in lancet.log(1) and "loading" in lancet.log(1)
    assert lancet.processes.alive() == []


def test_torchrun_gives_the_report_of_one_process(lancet, one_process_report):
    torchrun = pathlib.Path(sys.executable).parent / "torchrun"
    job = lancet.write(lancet.small_job())
    process = lancet.processes.start([torchrun, "--no-python", "--nproc-per-node=3", f"--master-port={free_port()}", LANCET, "edit", job],
                                     lancet.folder)  # fmt: skip
    returncode, out, err = lancet.finish(process)
    assert returncode == 0, err
    assert report_of(lancet) == one_process_report
    assert out.count("written: ") == 1 and len(re.findall(r"^loading ", err, re.M)) == 1, "only rank 0 talks to the terminal"


def test_ranks_by_hand_end_when_rank_0_which_serves_the_store_is_killed(lancet, stages):
    port, job = free_port(), lancet.write(lancet.small_job(run__timeout_s=600))
    fault = f"rank=0,stage={stages[3]},do=kill"
    ranks = [lancet.processes.start([LANCET, "edit", job], lancet.folder, **by_hand(r, 3, port, LANCET_FAULT=fault)) for r in range(3)]
    assert ranks[0].wait(120) == -signal.SIGKILL
    begun = time.monotonic()
    for rank in ranks[1:]:
        returncode, _, err = lancet.finish(rank, 60)
        assert returncode == 6 and re.search(r"rank 0 on \S+", err), err
    assert time.monotonic() - begun < 6
    assert not lancet.out.exists()


def test_ranks_by_hand_name_one_that_is_killed(lancet, stages):
    port, job = free_port(), lancet.write(lancet.small_job(run__timeout_s=600))
    fault = f"rank=2,stage={stages[3]},do=kill"
    ranks = [lancet.processes.start([LANCET, "edit", job], lancet.folder, **by_hand(r, 3, port, LANCET_FAULT=fault)) for r in range(3)]
    assert ranks[2].wait(120) == -signal.SIGKILL
    begun = time.monotonic()
    for rank in ranks[:2]:
        returncode, _, err = lancet.finish(rank, 60)
        assert returncode == 6 and re.search(rf"rank 2 on \S+, stage '{stages[3]}': has not been heard of", err), err
    assert time.monotonic() - begun < 8


def test_ranks_that_do_not_come_are_named(lancet):
    port, job = free_port(), lancet.write(lancet.small_job())
    here = [lancet.processes.start([LANCET, "edit", job, "--join-timeout", 3], lancet.folder, **by_hand(r, 4, port)) for r in (0, 2)]
    for rank in here:
        returncode, _, err = lancet.finish(rank, 30)
        assert returncode == 6 and "of 4 ranks these did not come within 3 s: 1, 3. Here are: 0 on " in err, err


def test_a_store_that_nobody_serves_is_named(lancet):
    port, job = free_port(), lancet.write(lancet.small_job())
    process = lancet.processes.start([LANCET, "edit", job, "--join-timeout", 2], lancet.folder, **by_hand(1, 2, port))
    returncode, _, err = lancet.finish(process, 30)
    assert returncode == 6 and f"does not reach the ranks' store at 127.0.0.1:{port} within 2 s: is rank 0 running there" in err


def test_a_rank_that_is_there_twice_is_refused(lancet):
    port, job = free_port(), lancet.write(lancet.small_job())
    command = [LANCET, "edit", job, "--join-timeout", 4]
    first = lancet.processes.start(command, lancet.folder, **by_hand(0, 3, port))
    twins = [lancet.processes.start(command, lancet.folder, **by_hand(1, 3, port)) for _ in range(2)]
    ends = [lancet.finish(process, 30) for process in (first, *twins)]
    assert [code for code, _, _ in ends] == [6, 6, 6]
    assert any("two processes say that they are rank 1" in err for _, _, err in ends[1:]), ends


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"RANK": 2, "WORLD_SIZE": 2, "LOCAL_RANK": 0}, "RANK=2: expected a whole number from 0 to 1"),
        ({"WORLD_SIZE": 2}, "RANK is not set"),
        ({"RANK": 0, "WORLD_SIZE": 2, "LOCAL_RANK": 0}, "MASTER_ADDR is not set"),
    ],
)
def test_an_environment_that_contradicts_itself_is_refused(lancet, variables, words):
    path = lancet.write(lancet.small_job())
    returncode, _, err = lancet.finish(lancet.processes.start([LANCET, "edit", path], lancet.folder, **variables))
    assert returncode == 2 and words in err and "--launcher none" in err


def test_the_environment_can_be_ignored(lancet):
    path = lancet.write(lancet.small_job())
    process = lancet.processes.start([LANCET, "edit", path, "--launcher", "none"], lancet.folder, RANK=1, WORLD_SIZE=2)
    returncode, _, err = lancet.finish(process)
    assert returncode == 0, err
    process = lancet.processes.start([LANCET, "edit", path, "--launcher", "slurm"], lancet.folder)
    returncode, _, err = lancet.finish(process)
    assert returncode == 2 and "--launcher slurm" in err


def test_launch_refuses_what_it_cannot_do(lancet):
    for arguments, words in [
        (["-n", 2, "--", "generate", "--model", "x"], "expected a command that several processes can share"),
        (["-n", 2, "--nodes", 2, "--", "edit", "job.json"], "--master: '': expected HOST:PORT"),
        (["-n", 2, "--nodes", 2, "--node-rank", 2, "--master", "a:1", "--", "edit", "job.json"], "node rank from 0 to 1"),
        (["-n", 2, "--nodes", 2, "--master", "a:1", "--", "edit", "job.json"], "export LANCET_SECRET="),
        (["-n", 2, "--log-dir", "/proc/logs", "--", "edit", "job.json"], "--log-dir: /proc/logs"),
    ]:
        result = lancet.run("launch", *arguments)
        assert result.returncode == 2 and words in result.stderr, result.stderr


def test_a_trace_runs_on_ranks(lancet):
    fact = ["--prompt", "Piranha Games, created in", "--subject", "Piranha Games", "--samples", 1, "--kinds", "mlp"]
    command = [LANCET, "launch", "-n", 2, "--", "trace", "--model", DATA / "demo-model", *fact, "--out", "traced"]
    returncode, out, err = lancet.finish(lancet.processes.start(command, lancet.folder))
    assert returncode == 0, err
    assert out.count("written: ") == 1 and (lancet.folder / "traced" / "trace.json").exists()
    assert f"each rank's output: {lancet.folder / 'logs' / 'rank-N.log'}" in err and lancet.log(1) != ""


def test_a_job_that_is_wrong_ends_all_ranks_with_its_message(lancet):
    returncode, _, err = lancet.finish(lancet.launch(lancet.small_job(editor__layers=[99])))
    assert returncode == 2 and "editor.layers: 99" in err
    returncode, _, err = lancet.finish(lancet.launch(lancet.small_job(accept={"efficacy_prob": 1.0}, editor__values__steps=1)))
    assert returncode == 5 and "accept: not met" in err
    assert not lancet.out.exists() and (lancet.folder / "out.rejected" / "report.json").exists()


# ---- two hosts -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_hosts():
    """Two network namespaces joined by a cable: commands to enter them. Each has its own host name."""
    names = ["lancet-a", "lancet-b"]
    script = """set -e
ip netns add lancet-a; ip netns add lancet-b
ip link add cable-a netns lancet-a type veth peer name cable-b netns lancet-b
for side in a b; do
  ip -n lancet-$side address add 10.77.0.$([ $side = a ] && echo 1 || echo 2)/24 dev cable-$side
  ip -n lancet-$side link set cable-$side up; ip -n lancet-$side link set lo up
done"""
    clean = "ip netns del lancet-a; ip netns del lancet-b; true"
    subprocess.run(["bash", "-c", clean], capture_output=True)
    made = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    enter = [["ip", "netns", "exec", name, "unshare", "--uts", "bash", "-c", f'hostname {name} && exec "$@"', name] for name in names]
    tried = [subprocess.run([*prefix, "true"], capture_output=True, text=True) for prefix in enter] if made.returncode == 0 else []
    if made.returncode != 0 or any(t.returncode != 0 for t in tried):
        subprocess.run(["bash", "-c", clean], capture_output=True)
        pytest.skip(f"network namespaces are not allowed here: {made.stderr.strip() or tried[0].stderr.strip()}")
    yield enter
    subprocess.run(["bash", "-c", clean], capture_output=True)


def on_two_hosts(lancet, two_hosts, job, **changes):
    path, port = lancet.write(job), free_port()
    changes["LANCET_SECRET"] = "of this test"
    return [
        lancet.processes.start([LANCET, "launch", "-n", 2, "--nodes", 2, "--node-rank", n, "--master", f"10.77.0.1:{port}", "--", "edit", path],
                               lancet.folder, prefix=two_hosts[n], **changes)
        for n in range(2)
    ]  # fmt: skip


def test_two_hosts_give_the_report_of_one_process(lancet, two_hosts, one_process_report):
    for host in on_two_hosts(lancet, two_hosts, lancet.small_job()):
        returncode, _, err = lancet.finish(host)
        assert returncode == 0, err
    assert report_of(lancet) == one_process_report
    assert lancet.processes.alive() == []


@pytest.mark.parametrize(("do", "code", "words"), [("throw", 5, "failed: LANCET_FAULT"), ("kill", 6, r"ended by signal 9")])
def test_a_fault_on_the_other_host_ends_both(lancet, two_hosts, stages, do, code, words):
    hosts = on_two_hosts(lancet, two_hosts, lancet.small_job(), LANCET_FAULT=f"rank=3,stage={stages[3]},do={do}")
    lancet.wait_for_log(3, "LANCET_FAULT")
    begun = time.monotonic()
    for host in hosts:
        returncode, _, err = lancet.finish(host, 60)
        assert returncode == code, err
        assert re.search(rf"rank 3 on lancet-b, stage '{stages[3]}': {words}", err), err
    assert time.monotonic() - begun < 8 and lancet.processes.alive() == []


@pytest.mark.full
def test_a_cut_cable_ends_both_hosts(lancet, two_hosts, stages):
    hosts = on_two_hosts(lancet, two_hosts, lancet.small_job(run__timeout_s=TIMEOUT_S), LANCET_FAULT=f"rank=3,stage={stages[3]},do=stall")
    lancet.wait_for_log(3, "LANCET_FAULT")
    subprocess.run(["ip", "-n", "lancet-b", "link", "set", "cable-b", "down"], check=True)
    for host in hosts:
        returncode, _, err = lancet.finish(host, 120)
        assert returncode == 6, err
    assert lancet.processes.alive() == []
