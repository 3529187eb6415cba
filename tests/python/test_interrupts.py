"""Whoever ends a call finds the weights as they were before it: Ctrl-C, cancel(), a callback that raises."""
import os
import shutil
import signal
import threading
import time

import lancet
import pytest
from conftest import FACTS, LIMIT_S, MODEL, weights_hash


class Stopper:
    """A progress callback that sees stages, and does something at the beginning of one."""

    def __init__(self):
        self.stages, self.stage, self.action = [], None, None

    def __call__(self, now):
        if now.stage not in self.stages:
            self.stages.append(now.stage)
        if now.stage == self.stage and not now.finished:
            self.stage = None
            self.action()


class Own(Exception):
    pass


def fail():
    raise Own("mine")


@pytest.fixture
def stopper():
    return Stopper()


@pytest.fixture
def stopped(options, stopper, tmp_path):
    """A session whose statistics no other test made."""
    statistics = {**options["statistics"], "cache": str(tmp_path / "cache")}
    with lancet.open(MODEL, **{**options, "progress": stopper, "statistics": statistics}) as session:
        yield session


def stages_of(session, stopper):
    stopper.stages = []
    session.edit(FACTS[:1])
    session.undo()
    stages = [stage for stage in stopper.stages if not stage.startswith("loading")]
    assert {"statistics", "values", "weights", "evaluate before", "evaluate after"} <= set(stages)
    return stages


def test_every_stage_can_be_cancelled_or_raised_in(options, stopper, stopped, tmp_path):
    unedited = weights_hash(stopped)
    statistics = {**options["statistics"], "cache": str(tmp_path / "cache")}
    for stage in stages_of(stopped, stopper):
        for action, error in ((fail, Own), (lambda: stopped.cancel(), lancet.Cancelled), (lambda: signal.raise_signal(signal.SIGINT), KeyboardInterrupt)):
            if stage in ("statistics", "factors"):  # of the first edit alone; what is finished is kept
                stopped.close()
                shutil.rmtree(tmp_path / "cache")
                stopped = lancet.open(MODEL, **{**options, "progress": stopper, "statistics": statistics})
            stopper.stage, stopper.action = stage, action
            with pytest.raises(error):
                stopped.edit(FACTS[:1])
            assert stopper.stage is None, f"{stage} did not come"
            assert weights_hash(stopped) == unedited and not stopped.edits, (stage, error)
    assert stopped.edit(FACTS[:1]).successes == 1, "goes on as if nothing had been"
    stopped.close()


def test_a_second_edit_that_is_ended_leaves_the_first(stopper, stopped):
    stopped.edit(FACTS[:1])
    first = weights_hash(stopped)
    for stage in ("values", "weights", "evaluate after"):
        stopper.stage, stopper.action = stage, fail
        with pytest.raises(Own):
            stopped.edit(FACTS[1:2])
        assert weights_hash(stopped) == first and stopped.edits.ids == ["0"]


def test_one_that_raises_at_the_very_end_takes_the_edit_back(options, session):
    unedited, told = weights_hash(session), []

    def at_end(now):
        told.append(now)
        if now.finished and now.stage == "evaluate after":
            raise Own

    with lancet.open(MODEL, **{**options, "progress": at_end}) as late:
        with pytest.raises(Own):
            late.edit(FACTS[:1])
        assert told[-1].finished and weights_hash(late) == unedited and not late.edits


def test_loading_can_be_ended(options):
    def first(now):
        raise Own

    with pytest.raises(Own):
        lancet.open(MODEL, **{**options, "progress": first})


def test_ctrl_c_from_elsewhere(options, session):
    """The default way: no callback, a signal from another thread while the main one waits."""
    unedited = weights_hash(session)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        session.edit(FACTS, values={"steps": 100000, "stop_loss": 0})
    timer.join()
    assert weights_hash(session) == unedited and not session.edits
    assert session.edit(FACTS[:1]).successes == 1


def test_ctrl_c_while_waiting_for_another_threads_call(options):
    begun, ended = threading.Event(), []
    session = lancet.open(MODEL, **{**options, "progress": lambda now: begun.set() if now.stage == "values" else None})

    def edit():
        try:
            session.edit(FACTS, values={"steps": 100000, "stop_loss": 0})
        except lancet.Cancelled as error:
            ended.append(error)

    thread = threading.Thread(target=edit)
    thread.start()
    assert begun.wait(LIMIT_S)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        session.generate("x")
    assert thread.is_alive() and not ended, "the other's call goes on"
    session.cancel()
    thread.join(LIMIT_S)
    assert ended
    session.cancel()  # nothing runs: nothing happens
    assert session.generate("x", tokens=1) is not None
    session.close()


def test_a_job_that_is_interrupted_leaves_no_output(options, tmp_path):
    job = {"model": str(MODEL), "requests": FACTS, "editor": {key: options[key] for key in ("method", "layers", "covariance_weight", "contexts")} | {"values": {"steps": 100000, "stop_loss": 0}}}
    job |= {"statistics": options["statistics"], "run": {"devices": "cpu", "dtype": "f32"}, "output": {"dir": str(tmp_path / "out")}}
    timer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        lancet.run(job, progress=False)
    timer.join()
    assert not (tmp_path / "out").exists()
