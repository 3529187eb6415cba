"""What the program keeps for as long as the process lives and may change, by its symbols: all of it is the process's."""
import re
import subprocess

from conftest import LANCET

# Their last name -> why. What begins with k is const, by the names' rule; a thread's own (.tbss) is not of the process.
PROCESS_WIDE = {
    "one": "stderr is the process's (StderrReporter)",
    "clock_now": "a test's clock",
    "living": "devices and the host keep one peak for the process",
    "mutex": "names of temporary files hold the process's id",
    "counter": "likewise",
    "cleaned": "likewise",
    "sentence": "what a signal's end says; signals are the process's",
    "caught_signal": "likewise, of the launcher",
    "end_of_others": "std::terminate is the process's",
    "driver": "NVIDIA's driver is loaded once",
    "made_kernels": "so are the kernels that were compiled for it",
    "torch_was_chosen": "likewise, where the environment asked for torch's",
    "wants": "the environment (LANCET_KERNELS), read once",
    "text": "what is compiled, put together once",
    "headers": "likewise",
    "scoped_launcher": "a test's kernels",
    "scoped_maker": "a test's graphs",
    "maker": "CUDA's graphs, which have no state",
    "has_avx2": "the processor is asked once",
    "has_avx512": "likewise",
    "streams": "torch's streams are the process's: each has one user at a time",
    "one_at_a_time": "so are the allocator and autograd's threads, while a graph is captured",
}
SYMBOL = re.compile(r"^[0-9a-f]+ .{7} \.(?:bss|data)\s+[0-9a-f]+\s+(?:\.hidden )?(lancet::.*)$", re.M)


def test_nothing_else_is_the_processs():
    symbols = subprocess.run(["objdump", "-tC", str(LANCET)], capture_output=True, text=True, check=True).stdout
    names = {name.rsplit("::", 1)[1].split("[abi:")[0] for name in SYMBOL.findall(symbols)}
    assert {name for name in names if not name.startswith("k")} == set(PROCESS_WIDE)
    assert "kAlphabet" in names  # the pattern finds variables
