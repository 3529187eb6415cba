"""The process is killed in front of any call that changes the disk, or in the middle of a write: the next run of the same command ends
with the bytes of a run that nothing disturbed, and leaves nothing lying about."""
import random

import pytest
from conftest import CHANGES, FULL, KILLED, TRIES, of_kind, require, some

CALLS = [*CHANGES, *TRIES]


def kill(stream, at, do):
    run = stream.run(CALLS, at, do=do)
    require(run.code == KILLED, f"ended with {run.code} in place of being killed: {run.said[-300:]}")


@pytest.mark.parametrize("name", ["fresh", "again"])
def test_a_kill_anywhere_is_mended_by_the_next_run(request, name):
    experiment = request.getfixturevalue(name)
    calls = experiment.calls(CALLS)
    assert len(calls) > 50
    cases = [(at, "kill") for at in range(1, len(calls) + 1)]
    cases += [(at, "tear") for at, (call, _) in enumerate(calls, 1) if call in ("write", "copy_file_range")]
    cases = some(cases, 8, lambda case: (case[1], *of_kind(*calls[case[0] - 1])))

    def attempt(stream, case):
        kill(stream, *case)
        experiment.expect_whole(stream)
        experiment.expect_next_run_mends(stream)
        return "mended"

    experiment.try_all(f"kills, {name}", cases, attempt)


def test_a_kill_while_progress_is_removed_leaves_none_to_go_on_from(again):
    """A half of it would be a whole one to look at: batches without what they were solved from."""
    calls = again.calls(CALLS)
    cases = [(at, "kill") for at, (call, path) in enumerate(calls, 1) if call in ("unlink", "rmdir") and "out.unfinished/progress/" in path]
    assert len(cases) > 5

    def attempt(stream, case):
        kill(stream, *case)
        again.expect_next_run_mends(stream)
        return "mended"

    again.try_all("kills, progress", cases, attempt)


@pytest.mark.parametrize("name", ["fresh", "again"])
def test_two_kills_are_mended_by_the_third_run(request, name):
    """The second one hits the run that mends what the first one left."""
    experiment = request.getfixturevalue(name)
    last = len(experiment.calls(CALLS))
    generator = random.Random(2)
    cases = [(generator.randint(1, last), generator.randint(1, last)) for _ in range(100 if FULL else 2)]

    def attempt(stream, case):
        kill(stream, case[0], "kill")
        second = stream.run(CALLS, case[1], do="kill")
        if second.code == KILLED:
            experiment.expect_whole(stream)
            experiment.expect_next_run_mends(stream)
            return "mended"
        require(second.code == 0, f"the second run ended with {second.code}: {second.said[-300:]}")
        return "done before the second kill"

    experiment.try_all(f"two kills, {name}", cases, attempt)
