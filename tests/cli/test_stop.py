"""Ctrl-C and its like: the program says that it stopped and what is kept, and the same command goes on."""
import re
import signal
import subprocess
import time

from conftest import LANCET
from conftest import lancet_alone as lancet  # noqa: F401 - the cache is looked at


def start(lancet, *arguments, ignored=(), stderr=subprocess.PIPE):
    """Signals of `ignored` are, as nohup does it."""

    def ignore():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    command = [str(LANCET), *map(str, arguments)]
    return subprocess.Popen(command, cwd=lancet.folder, text=True, stdout=subprocess.PIPE, stderr=stderr, preexec_fn=ignore)


def wait_for(process, found):
    end = time.monotonic() + 120
    while not found():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "the job never came so far"
        time.sleep(0.02)


def test_ctrl_c_says_what_is_kept_and_the_same_command_goes_on(lancet):
    job = lancet.job(requests__limit=4, editor__values={"steps": 60, "lr": 0.1, "clamp": 4.0, "batch": 1}, evaluate=[], run__threads=1)
    unfinished = lancet.folder / "out.unfinished"
    process = start(lancet, "edit", lancet.write(job), ignored=[signal.SIGHUP])
    wait_for(process, lambda: any(unfinished.glob("*.safetensors")))
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT, "a shell shows 130"
    kept = f"lancet: error: stopped by SIGINT (Ctrl-C); what was finished is kept ({unfinished}), and the same command goes on from there\n"
    assert err.endswith(kept), err
    assert not lancet.out.exists()

    again = lancet.edit(job)
    assert again.returncode == 0, again.stderr
    assert int(re.search(r"values  ([0-9]+) requests? taken from an interrupted run", again.stderr)[1]) >= 1
    assert (lancet.out / "report.json").exists() and sorted(p.name for p in lancet.folder.iterdir()) == ["cache", "job.json", "out"]


def test_a_stopped_pass_of_statistics_names_its_sums(lancet):
    job = lancet.job(statistics__tokens=150000, statistics__save_every_s=0, run__threads=1)
    process = start(lancet, "stats", lancet.write(job), "--quiet")
    wait_for(process, lambda: any((lancet.folder / "cache").glob("*.partial.safetensors")))
    process.terminate()
    _, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGTERM, "a shell shows 143"
    assert f"stopped by SIGTERM; what was finished is kept (the sums of statistics in {lancet.folder / 'cache'})" in err, err


def test_a_command_without_a_job_stops_with_a_word_too(lancet):
    process = subprocess.Popen([LANCET, "generate", "--model", lancet.copy_model()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    process.stdin.write("Piranha Games, created in\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith("Piranha Games")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == -signal.SIGINT
    assert process.stderr.read().endswith("lancet: error: stopped by SIGINT (Ctrl-C)\n")
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
