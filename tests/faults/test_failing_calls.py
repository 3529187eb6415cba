"""A call fails: files, folders, memory, descriptors. The job ends with a documented exit code and words that say where, or does without;
never with a wrong model, a signal, or code 70. The next run succeeds."""
import errno
import random
import resource

import numpy
import pytest
from conftest import CHANGES, FULL, LOOKS, TRIES, names_a_path, of_kind, require, some

# What each call may say.
ERRORS = {
    "create": [errno.ENOSPC, errno.EACCES, errno.EMFILE],
    "write": [errno.ENOSPC, errno.EIO],
    "copy_file_range": [errno.ENOSPC, errno.EIO, errno.EXDEV],
    "ftruncate": [errno.EIO],
    "fsync": [errno.EIO],
    "rename": [errno.EIO, errno.ENOSPC],
    "unlink": [errno.EACCES],
    "rmdir": [errno.EACCES],
    "mkdir": [errno.ENOSPC, errno.EACCES],
    "open": [errno.EACCES, errno.EMFILE],
    "read": [errno.EIO],
    "mmap": [errno.ENOMEM],
    "stat": [errno.EACCES],
    "opendir": [errno.EIO],
    "readdir": [errno.EIO],
    "ioctl": [errno.EOPNOTSUPP],
    "sync_file_range": [errno.EIO],
    "flock": [errno.ENOLCK],
}
PASSING = {"create", "open", "write", "copy_file_range", "read"}  # that a signal may interrupt, or that may do half
SPACE = ["create", "write", "copy_file_range", "mkdir", "fsync"]  # what a full disk refuses


# Calls by which files are removed, and what may then stay in the cache: nobody reads it.
REMOVING = {"unlink", "open", "opendir", "readdir"}
NOT_REMOVED = r"cache/(\.lancet-\d+-\d+\.tmp|[0-9a-f]{32}\.partial\.safetensors)"


def fails_as_documented(experiment, stream, run, call=None):
    end = experiment.expect_documented(stream, run)
    require(run.code == 0 or names_a_path(run.said, stream), f"names no path: {run.said[-300:]}")
    experiment.expect_next_run_mends(stream, NOT_REMOVED if call in REMOVING else None)
    return end


@pytest.mark.parametrize("name", ["fresh", "again"])
@pytest.mark.parametrize("kind", ["changes", "looks"])
def test_a_failing_call_ends_the_job_as_documented(request, name, kind):
    experiment = request.getfixturevalue(name)
    names = [*CHANGES, *TRIES] if kind == "changes" else LOOKS
    calls = experiment.calls(names)
    cases = [(at, call, error) for at, (call, _) in enumerate(calls, 1) for error in ERRORS[call]]
    cases = some(cases, 6, lambda case: (case[2], *of_kind(*calls[case[0] - 1])))

    def attempt(stream, case):
        return fails_as_documented(experiment, stream, stream.run(names, case[0], do=case[2]), case[1])

    experiment.try_all(f"failing calls, {kind}, {name}", cases, attempt)


@pytest.mark.parametrize("do", ["short", errno.EINTR])
def test_calls_that_do_half_or_are_interrupted_change_nothing(fresh, do):
    names = sorted(PASSING - ({"create", "open"} if do == "short" else set()))
    n_calls = len(fresh.calls(names))
    cases = [(at, at) for at in some(range(1, n_calls + 1), 2)] + ([(1, 10**9)] if do == "short" else [])

    def attempt(stream, case):
        run = stream.run(names, case[0], until=case[1], do=do)
        require(run.code == 0, f"ended with {run.code}: {run.said[-300:]}")
        require(fresh.expect_documented(stream, run) == "done", "another model")
        return "done"

    fresh.try_all("calls that do half" if do == "short" else "interrupted calls", cases, attempt)


@pytest.mark.parametrize("name", ["fresh", "again"])
def test_a_disk_that_fills_up_ends_the_job_as_documented(request, name):
    experiment = request.getfixturevalue(name)
    cases = some(range(1, len(experiment.calls(SPACE)) + 1), 2)

    def attempt(stream, at):
        return fails_as_documented(experiment, stream, stream.run(SPACE, at, until=10**9, do=errno.ENOSPC))

    experiment.try_all(f"full disks, {name}", cases, attempt)


def test_no_descriptors_left_ends_the_job_as_documented(fresh):
    def attempt(stream, limit):
        if stream.run_under(resource.RLIMIT_NOFILE, limit, ["--version"]).code != 0:
            return "not loaded"
        return fails_as_documented(fresh, stream, stream.run_under(resource.RLIMIT_NOFILE, limit), "opendir")

    fresh.try_all("limits of open files", some(range(4, 30), 2), attempt)


def test_a_limit_of_file_sizes_ends_the_job_as_documented(fresh):
    def attempt(stream, size):
        return fails_as_documented(fresh, stream, stream.run_under(resource.RLIMIT_FSIZE, size))

    fresh.try_all("limits of file sizes", some([0, 512, 4096, 10000, 20000, 30000, 100000, 500000], 2), attempt)


def nearly_equal(one, other):
    """Two safetensors files of f32 with the same header."""
    (a, b) = (numpy.frombuffer(path.read_bytes()[8:], "<f4") for path in (one, other))
    return a.shape == b.shape and bool((abs(a - b) <= 1e-4).all())


def another_model(stream, experiment):
    one, other = (place.out / "model.safetensors" for place in (stream, experiment.reference))
    return one.exists() and one.read_bytes() != other.read_bytes()


LARGE = 16384  # bytes: tensors and buffers; what is smaller is the C++ library's own


@pytest.mark.parametrize("until", ["once", "from then on"])
def test_exhausted_memory_ends_the_job_as_documented(fresh, until):
    n_calls = sum(call == "malloc" for call, _ in fresh.stream(0).run(["malloc"], smallest=LARGE).calls)
    assert n_calls > 50
    generator = random.Random(3)
    cases = sorted(generator.sample(range(1, n_calls + 1), min(n_calls, 200 if FULL else 2)))

    def attempt(stream, at):
        run = stream.run(["malloc"], at, until=at if until == "once" else 10**9, do=errno.ENOMEM, smallest=LARGE)
        if run.code == 0 and "trying half as many" in run.said:  # values in smaller batches have other last bits
            require(nearly_equal(stream.out / "model.safetensors", fresh.reference.out / "model.safetensors"), "another model")
            return "done in smaller batches"
        if run.code == 0 and until == "once" and another_model(stream, fresh):
            require(nearly_equal(stream.out / "model.safetensors", fresh.reference.out / "model.safetensors"), "another model")
            return "done, to other last bits"  # a matrix product without its own buffer adds in another order
        end = fresh.expect_documented(stream, run)
        require(end in ("done", "exit 4"), f"{end}: {run.said[-300:]}")
        fresh.expect_next_run_mends(stream, NOT_REMOVED)
        return end

    fresh.try_all(f"failing allocations, {until}", cases, attempt)
