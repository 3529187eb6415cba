"""A program, loaded once and forked for every run (tests/faults/fork_server.cpp): loading it with its libraries takes longer than most runs."""
import os
import pathlib
import signal
import subprocess
import threading


# For environments: what was freed is used again. To have fresh pages cleared takes a tenth of a run's time.
KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**32), "MALLOC_TOP_PAD_": str(2**24)}


def can_be_ordered(arguments):
    """Orders are lines; a few kinds of them are no arguments."""
    return all(text and "\n" not in text and not text.startswith(("@", "LANCET_")) for text in arguments)


class ProgramServer:
    """Of lancet, or of a program of the tests."""

    def __init__(self, program, environment):
        folder = pathlib.Path(program).parent
        library = (folder if folder.name == "tests" else folder / "tests") / "liblancet_faults.so"
        self.environment = environment
        environment = {**environment, "LD_PRELOAD": str(library), "LANCET_FAULTS_SERVE": "1"}
        self.process = subprocess.Popen([str(program)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, folder, arguments, variables=None, limit_s=120):
        """(exit code, stdout, stderr); minus the signal's number where one ended it. The run has nothing to read, and `folder` to be in."""
        lines = [f"@{folder}", *arguments, *(f"{name}={value}" for name, value in (variables or {}).items()), "", ""]
        self.process.stdin.write("\n".join(lines))
        self.process.stdin.flush()
        child = int(self.process.stdout.readline().split()[1])
        timer = threading.Timer(limit_s, os.kill, (child, signal.SIGABRT))
        timer.start()
        status = int(self.process.stdout.readline().split()[1])
        timer.cancel()
        said = [pathlib.Path(f"{folder}.{end}").read_text(errors="replace") for end in ("out", "err")]
        return os.waitstatus_to_exitcode(status), *said

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
