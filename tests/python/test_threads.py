"""Threads: calls wait for each other, Python goes on meanwhile, and nothing hangs at the end."""
import gc
import threading
import time

import lancet
import pytest
from conftest import FACTS, LIMIT_S, MODEL, run_python, weights_hash


def together(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_two_sessions_in_two_threads(options, session):
    session.edit(FACTS[:2])
    alone, hashes = weights_hash(session), {}

    def edit(name):
        with lancet.open(MODEL, **options) as mine:
            mine.edit(FACTS[:2])
            hashes[name] = weights_hash(mine)

    together(lambda: edit("a"), lambda: edit("b"))
    assert hashes == {"a": alone, "b": alone}


def test_a_second_threads_call_waits(session):
    order, begun = [], threading.Event()

    def edit():
        begun.set()
        session.edit(FACTS)
        order.append("edit")

    def ask():
        begun.wait()
        time.sleep(0.1)  # the edit has the session
        order.append(len(session.edits))

    together(edit, ask)
    assert sorted(map(str, order)) == ["3", "edit"], "it saw the edit whole"


def test_python_goes_on_during_an_edit(session):
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    begun = time.monotonic()
    session.edit(FACTS)
    ended = time.monotonic()
    stop.set()
    ticker.join()
    during = sum(begun < at < ended for at in ticks)
    assert during > 10, f"{during} ticks in {ended - begun:.1f} s"


def test_a_call_within_a_callback_is_refused(options):
    told = []

    def progress(now):
        if now.stage == "values" and not told:
            told.append(now)
            with pytest.raises(lancet.ConfigError, match="only cancel"):
                session.generate("x")
            with pytest.raises(lancet.ConfigError, match="only cancel"):
                session.close()

    session = lancet.open(MODEL, **{**options, "progress": progress})
    session.edit(FACTS[:1])
    assert told and told[0].unit and told[0].line.startswith("values")
    session.close()


def test_closing_ends_a_call_of_another_thread(options):
    begun, ended = threading.Event(), []
    session = lancet.open(MODEL, **{**options, "progress": lambda now: begun.set()})
    begun.clear()

    def edit():
        try:
            session.edit(FACTS * 1, values={"steps": 100000, "stop_loss": 0})
        except lancet.Cancelled as error:
            ended.append(error)

    thread = threading.Thread(target=edit)
    thread.start()
    assert begun.wait(LIMIT_S)
    session.close()
    thread.join(LIMIT_S)
    assert ended and session.closed


EXIT = """
import threading, time, sys
import lancet
options = {options!r}
options["progress"] = lambda now: begun.set() if now.stage == "values" else None
begun = threading.Event()
session = lancet.open({model!r}, **options)
def work():
    session.edit({facts!r}, values={{"steps": 100000, "stop_loss": 0}})
thread = threading.Thread(target=work, daemon=True)
thread.start()
begun.wait()
{end}
print("end", flush=True)
"""


@pytest.mark.parametrize("end", ["", "del session", "import gc; session = None; gc.collect()"])
def test_the_interpreter_ends_while_a_daemon_works(options, tmp_path, end):
    text = EXIT.format(options=options, model=str(MODEL), facts=FACTS[:1], end=end)
    assert run_python(text, tmp_path).splitlines()[-1] == "end"


def test_a_session_that_is_dropped_ends_its_thread(tiny):
    def n_threads():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("Threads:"))

    lancet.open(tiny, progress=False)  # what the process starts once
    before = n_threads()
    kept = []
    session = lancet.open(tiny, progress=lambda now: kept)
    kept.append(session)  # a circle through the callback
    assert n_threads() > before
    del session, kept
    gc.collect()
    deadline = time.monotonic() + LIMIT_S
    while n_threads() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert n_threads() == before


def test_a_forked_process_is_told(tmp_path, tiny):
    text = f"""
import os, lancet
session = lancet.open({str(tiny)!r}, progress=False)
child = os.fork()
if child == 0:
    try:
        session.generate("x")
    except lancet.ConfigError as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(text, tmp_path).strip() == "7"


SESSIONS = """
import gc, lancet, os
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
def threads():
    return len(os.listdir("/proc/self/task"))
sizes = []
for i in range(200):
    with lancet.open({tiny!r}, progress=False, threads=1) as session:
        session.generate("a", tokens=1)
    if i in (49, 199):
        gc.collect()
        sizes.append((resident(), threads()))
print(sizes[0][0], sizes[1][0], sizes[0][1], sizes[1][1])
"""


def test_200_sessions_leave_nothing(tiny, tmp_path):
    after_50, after_200, threads_50, threads_200 = map(float, run_python(SESSIONS.format(tiny=str(tiny)), tmp_path).split())
    print(f"{after_50:.1f} MiB after 50 sessions, {after_200:.1f} after 200; threads {threads_50:.0f}, {threads_200:.0f}")
    assert after_200 - after_50 < 8 and threads_200 == threads_50
