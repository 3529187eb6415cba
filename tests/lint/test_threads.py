"""Threads report to whom the work that starts them reports: two sessions in one process do not meet."""
import re

import pytest
from cpp_source import REPOSITORY, load_sources, source

# file -> how its threads report
THREADS = {
    "src/core/parallel.cpp": "a ReporterScope in each",
    "src/core/progress.cpp": "to the reporter that the heartbeat keeps",
    "src/runtime/memory.cpp": "a ReporterScope",
    "src/distributed/thread_ranks.cpp": "a ReporterScope in each",
    "src/distributed/rank_watch.cpp": "to the reporter that the watch keeps",
    "models/loading/tensor_io.cpp": "an upload, which reports nothing",
    "src/python/worker.cpp": "a ReporterScope",
    "src/http/http_server.cpp": "connections', which read, write and queue; what they report is the program's",
    "src/http/work_queue.cpp": "the work brings a ReporterScope",
    "src/cli/terminal.cpp": "the program's own: signals are the process's",
}
STARTS = re.compile(r"=\s*std::j?thread\(|\bstd::j?thread\(\[|\bstd::async\(|\bvector<std::j?thread>|\bstd::j?thread \w+[({]|\bpthread_create\b")


def thread_starts(sources):
    return {str(file.path) for file in sources if STARTS.search(file.without_comments)}


def test_threads_take_their_reporter_along():
    sources = [file for file in load_sources(REPOSITORY) if not str(file.path).startswith(("tests", "bench", "examples"))]
    assert thread_starts(sources) == set(THREADS)


@pytest.mark.parametrize(
    "text",
    ["thread_ = std::jthread([this] {});", "std::thread([] {}).detach();", "auto f = std::async(std::launch::async, g);", "std::thread t(f);"],
)
def test_starts_finds(text):
    assert thread_starts([source("src/io/a.cpp", text)]) == {"src/io/a.cpp"}


def test_starts_lets_pass():
    assert not thread_starts([source("src/io/a.cpp", "std::thread::hardware_concurrency(); std::jthread thread_; // std::thread t(f);")])
