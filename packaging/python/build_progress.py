"""How far a build is, told every few seconds: pip shows nothing of what a build says, unless it is called with -v, and a build takes
many minutes. Lines go to the terminal, or into the file that LANCET_BUILD_PROGRESS names."""
import os
import pathlib
import re
import sys
import threading
import time

EVERY_S, AT_LEAST_EVERY_S = 5.0, 15.0
_NINJA = re.compile(rb"^\[(\d+)/(\d+)\] ", re.M)
_MAKE = re.compile(rb"^\[ *(\d+)%\] ", re.M)


def duration(seconds):
    """ "50 s", "3 min 20 s", "1 h 05 min"."""
    seconds = int(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def line(done, total, seconds):
    """How far it is; the time left goes by what was done so far."""
    if not total:
        return f"lancet: the build begins, {duration(seconds)}"
    told = f"lancet: built {done} of {total}, {duration(seconds)}"
    if done == total or seconds < 10 or done * 20 < total:
        return told
    return f"{told}, some {duration(seconds / done * (total - done))} left"


def _caller_shows_output():
    """Whether pip, which runs this process, was called with -v: then it shows what goes to stdout."""
    try:
        words = pathlib.Path(f"/proc/{os.getppid()}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(re.fullmatch(rb"-v+|--verbose", word) for word in words)


def _open_terminal():
    """Where lines go besides stdout; None: nowhere."""
    try:
        if path := os.environ.get("LANCET_BUILD_PROGRESS"):
            return open(path, "a")
        if sys.stdout.isatty() or _caller_shows_output():
            return None
        return open("/dev/tty", "w")
    except OSError:
        return None


class Told:
    """While it holds, what this process and its children write to stdout is read for how far they are, and goes on to where it went."""

    def __enter__(self):
        self.begun, self.told, self.shown = time.monotonic(), 0.0, None
        self.done = self.total = 0
        self.terminal = _open_terminal()
        sys.stdout.flush()
        self.stdout = os.dup(1)
        source, sink = os.pipe()
        os.dup2(sink, 1)
        os.close(sink)
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self._read, args=(source,)), threading.Thread(target=self._tell_at_times)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        sys.stdout.flush()
        os.dup2(self.stdout, 1)
        self.ended.set()
        for thread in self.threads:
            thread.join()
        self._tell()
        os.close(self.stdout)
        if self.terminal is not None:
            self.terminal.close()

    def _read(self, source):
        rest = b""
        while got := os.read(source, 1 << 16):
            self._write(got)
            rest = (rest + got)[-(1 << 16) :]
            for done, total in _NINJA.findall(rest):
                self.done, self.total = int(done), int(total)
            for share in _MAKE.findall(rest):
                self.done, self.total = int(share), 100
            rest = rest[rest.rfind(b"\n") + 1 :]
        os.close(source)

    def _write(self, data):
        while data:
            data = data[os.write(self.stdout, data) :]

    def _tell_at_times(self):
        while not self.ended.wait(EVERY_S):
            quiet = time.monotonic() - self.told
            if self.shown != (self.done, self.total) or quiet >= AT_LEAST_EVERY_S:
                self._tell()

    def _tell(self):
        self.shown, self.told = (self.done, self.total), time.monotonic()
        text = line(self.done, self.total, self.told - self.begun) + "\n"
        self._write(text.encode())
        if self.terminal is not None:
            # pip's own line has no end yet
            self.terminal.write(text if "LANCET_BUILD_PROGRESS" in os.environ else f"\n{text}")
            self.terminal.flush()
