"""What a run of the kit was asked for, and where its files are."""
import re
import sys
from dataclasses import dataclass
from pathlib import Path

KIT = Path(__file__).resolve().parents[1]


def plain(name):
    """A file's name of what a step or an edit is called: letters, digits, dot, dash, underscore."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)


@dataclass
class Settings:
    mode: str
    devices: list  # "cuda:0", or "cpu"
    out: Path  # what stays: results.json, table.txt, logs.tar.gz
    work: Path  # what goes at the end: logs, models, caches
    shape: str = ""  # of random weights; empty: the mode's own
    doctor: dict = None  # facts of `lancet doctor --json`, once it has run

    @property
    def logs(self):
        return self.work / "logs"

    @property
    def is_host_only(self):
        """Then everything is small: the kit itself is what is tested."""
        return all(device == "cpu" for device in self.devices)

    @staticmethod
    def program(name, *arguments):
        """A program of the kit, with torch's libraries from the machine's Python."""
        return [KIT / "program.sh", name, *arguments]

    @staticmethod
    def script(name, *arguments):
        return [sys.executable, "-B", KIT / "kit" / name, *arguments]

    def host_to_device_rate(self):
        """Bytes a second that doctor measured; None where it measured none."""
        copies = (self.doctor or {}).get("copies", [])
        rates = [copy["bytes_per_s"] for copy in copies if copy["from"] == "cpu" and copy["to"] == self.devices[0]]
        return rates[0] if rates else None
