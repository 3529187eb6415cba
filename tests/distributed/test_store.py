"""The store that ranks meet in: who can reach it, and whom its ranks believe."""
import json
import pathlib
import signal
import time

from conftest import LANCET
from ports import free_port
from test_joining import by_hand

LISTENS = "0A"


def listening_addresses(pids):
    """(address, port) as /proc/net spells them, of every listening TCP socket of these processes: what `ss -ltnp` shows."""
    inodes = set()
    for pid in pids:
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = str(descriptor.readlink())
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[len("socket:[") : -1])
    found = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and fields[9] in inodes:
                address, port = fields[1].split(":")
                found.append((address, int(port, 16)))
    return found


def is_loopback(address):
    return address in ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")


def variable(pid, name):
    variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return next(v.split("=", 1)[1] for v in variables if v.startswith(f"{name}="))


def connected_store(port):
    import torch.distributed

    return torch.distributed.TCPStore("127.0.0.1", port, None, False, wait_for_workers=False)


def test_a_launched_job_is_reached_from_this_host_alone_and_believes_nobody_else(lancet, stages):
    process = lancet.launch(lancet.small_job(run__timeout_s=600), LANCET_FAULT=f"rank=1,stage={stages[-1]},do=stall")
    lancet.wait_for_log(1, "LANCET_FAULT: stall")
    pids = [pid for pid, _ in lancet.processes.alive()]
    assert len(pids) == 4
    listening = listening_addresses(pids)
    port = int(variable(lancet.processes.pid_of(0), "MASTER_PORT"))
    assert port in [number for _, number in listening]
    assert all(is_loopback(address) for address, _ in listening), listening

    secret = variable(lancet.processes.pid_of(0), "LANCET_SECRET")
    assert len(secret) == 32 and secret not in " ".join(pathlib.Path(f"/proc/{pid}/cmdline").read_text() for pid in pids)
    store = connected_store(port)
    assert store.check(["lancet/lancet-launch.0/presence/2"])
    store.set("lancet/lancet-launch.0/failure", json.dumps([2, "here", "export", "all is well", 0]))
    lancet.processes.send(2, signal.SIGKILL)
    returncode, _, err = lancet.finish(process, 60)
    assert returncode == 6 and "ended by signal 9 (Killed)" in err and "all is well" not in err, err
    assert not lancet.out.exists() and lancet.processes.alive() == []


def test_a_failure_is_no_success_whatever_its_code(lancet):
    """Ranks by hand without a secret: whoever connects can end the job, but not make it look done."""
    port, job = free_port(), lancet.write(lancet.small_job())
    rank = lancet.processes.start([LANCET, "edit", job, "--join-timeout", 60], lancet.folder, **by_hand(0, 2, port))
    key = "lancet/./"
    end = time.monotonic() + 60
    store = connected_store(port)
    while not store.check([f"{key}presence/0"]):
        assert time.monotonic() < end
        time.sleep(0.05)
    store.set(f"{key}failure", json.dumps([1, "here\u001b[2J", "export", "all is well", 0]))
    returncode, _, err = lancet.finish(rank, 60)
    assert returncode == 6 and "all is well" in err and "\x1b" not in err, err


def test_ranks_with_different_secrets_do_not_believe_each_other(lancet):
    port, job = free_port(), lancet.write(lancet.small_job())
    ranks = [
        lancet.processes.start([LANCET, "edit", job, "--join-timeout", 30], lancet.folder, **by_hand(r, 2, port, LANCET_SECRET=f"of {r}"))
        for r in range(2)
    ]
    ends = [lancet.finish(rank, 60) for rank in ranks]
    assert [code for code, _, _ in ends] == [6, 6]
    assert all("not written with this job's secret: LANCET_SECRET differs" in err for _, _, err in ends), ends
