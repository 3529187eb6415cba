"""Steps: programs, each with a time limit of its own, all under one deadline. What fails or hangs does not end the others."""
import os
import shlex
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Callable, Optional

from settings import plain

OK, FAILED, TIMED_OUT, SKIPPED, NOT_RUN = "ok", "failed", "timed out", "skipped", "not run"
BAD = (FAILED, TIMED_OUT, NOT_RUN)
TAIL_CHARACTERS = 4000
LOOK_S = 0.1  # how often a step that runs is looked at: whether the run was stopped


@dataclass
class Step:
    name: str
    command: list
    limit_s: float
    read: Optional[Callable] = None  # of what it printed: its figures. Throws ValueError where they say that it failed
    needs: tuple = ()  # names of steps without which it makes no sense
    environment: dict = field(default_factory=dict)
    skip: str = ""  # why it does not apply here


@dataclass
class Outcome:
    name: str
    command: str
    state: str
    seconds: float = 0.0
    exit_code: Optional[int] = None
    note: str = ""
    figures: dict = field(default_factory=dict)
    stdout_tail: str = ""
    stderr_tail: str = ""

    def to_json(self):
        return asdict(self)


def tail(path):
    text = path.read_text(errors="replace") if path.exists() else ""
    return text[-TAIL_CHARACTERS:]


def end_group(process):
    """All that the step has started; returns words when that does not help, as with a process that a driver holds."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        return "; it does not end by SIGKILL"
    return ""


class Runner:
    def __init__(self, logs: Path, deadline_s: float, step_limit_s: float, tell: Callable):
        self.logs, self.tell, self.step_limit_s = logs, tell, step_limit_s
        self.end = time.monotonic() + deadline_s
        self.outcomes = {}
        self.is_stopped = False

    def stop(self, *_):
        """A signal's handler: ends the step that runs; the others are told as not run."""
        self.is_stopped = True

    def run(self, steps):
        """May be called again with further steps."""
        for step in steps:
            self.outcomes[step.name] = outcome = self._outcome_of(step)
            self.tell(outcome)

    def _outcome_of(self, step):
        command = shlex.join(map(str, step.command))
        missing = [name for name in step.needs if self.outcomes[name].state != OK]
        if step.skip:
            return Outcome(step.name, command, SKIPPED, note=step.skip)
        if self.is_stopped:
            return Outcome(step.name, command, NOT_RUN, note="the run was stopped")
        if time.monotonic() >= self.end:
            return Outcome(step.name, command, NOT_RUN, note="no time was left")
        if missing:
            return Outcome(step.name, command, SKIPPED, note=f"needs: {', '.join(missing)}")
        return self._run(step, command)

    def _run(self, step, command):
        # the number tells apart what plain() makes equal
        out, err = (self.logs / f"{len(self.outcomes):02}-{plain(step.name)}.{kind}" for kind in ("out", "err"))
        limit_s = min(step.limit_s, self.step_limit_s, max(self.end - time.monotonic(), 0.1))
        begin = time.monotonic()
        outcome = Outcome(step.name, command, OK)
        with open(out, "wb") as to_out, open(err, "wb") as to_err:
            try:
                process = subprocess.Popen(
                    [str(word) for word in step.command], stdin=subprocess.DEVNULL, stdout=to_out, stderr=to_err,
                    start_new_session=True, env={**os.environ, **step.environment},
                )  # fmt: skip
            except OSError as error:
                return Outcome(step.name, command, FAILED, note=str(error))
            self._wait(process, limit_s, outcome)
        outcome.seconds = round(time.monotonic() - begin, 3)
        if outcome.exit_code not in (0, None):
            outcome.state, outcome.note = FAILED, f"exit code {outcome.exit_code}"
        outcome.stdout_tail, outcome.stderr_tail = tail(out), tail(err)
        self._read(step, outcome, out)
        return outcome

    def _wait(self, process, limit_s, outcome):
        end = time.monotonic() + limit_s
        while not self.is_stopped and time.monotonic() < end:
            try:
                outcome.exit_code = process.wait(timeout=LOOK_S)
                return
            except subprocess.TimeoutExpired:
                pass
        if self.is_stopped:
            outcome.state, outcome.note = FAILED, "the run was stopped" + end_group(process)
        else:
            outcome.state, outcome.note = TIMED_OUT, f"ended after {limit_s:.0f} s" + end_group(process)

    @staticmethod
    def _read(step, outcome, out):
        """Also of a step that failed, as far as it got."""
        if step.read is None:
            return
        try:
            outcome.figures = step.read(out.read_text(errors="replace"))
        except (ValueError, KeyError, TypeError, IndexError, OSError) as error:
            if outcome.state == OK:
                outcome.state, outcome.note = FAILED, f"what it printed: {type(error).__name__}: {error}"

    def failed(self):
        return [outcome for outcome in self.outcomes.values() if outcome.state in BAD]
