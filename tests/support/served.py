"""`lancet serve` as tests start it and speak with it."""
import http.client
import json
import os
import subprocess
import time
from urllib.parse import parse_qs, urlparse

LIMIT_S = 120


class Served:
    def __init__(self, program, folder, *arguments, settings=()):
        self.folder = folder
        sets = [word for setting in settings for word in ("--set", setting)]
        self.process = subprocess.Popen([str(program), "serve", *map(str, arguments), *sets, "--dir", "serve"], cwd=folder, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            self.failed()
        place = urlparse(self.address)
        self.host, self.port, self.token = place.hostname, place.port, parse_qs(place.query)["token"][0]

    def failed(self):
        out, err = self.process.communicate(timeout=LIMIT_S)
        raise ChildProcessError(self.process.returncode, err)

    @property
    def dir(self):
        return self.folder / "serve"

    def connection(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=LIMIT_S)

    def send(self, method, path, body=None, token=True, **headers):
        """(status, JSON or bytes). A body that is no bytes is sent as JSON."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers.setdefault("X-Lancet-Token", self.token)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = self.connection()
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        is_json = reply.getheader("Content-Type", "").startswith("application/json")
        return reply.status, json.loads(text) if is_json else text

    def get(self, path):
        status, got = self.send("GET", path)
        assert status == 200, (path, status, got)
        return got

    def state(self, since=0):
        return self.get(f"/api/state?since={since}")

    def order(self, path, body):
        status, got = self.send("POST", path, body)
        assert status == 202, (path, status, got)
        return got["item"]

    def end_of(self, item):
        """How the work ended: its row of `finished`."""
        since, end = 0, time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            state = self.state(since)
            since = state["state"]
            for row in state["finished"]:
                if row["item"] == item:
                    return row
        raise AssertionError(f"work {item} has no end: {state}")

    def do(self, path, body):
        done = self.end_of(self.order(path, body))
        assert done["outcome"] == "done", done
        return done["message"]

    def edits(self):
        return self.get("/api/edits")

    def undo(self, *ids):
        body = {"edits_version": self.edits()["edits_version"]} | ({"ids": list(ids)} if ids else {})
        return self.do("/api/undo", body)

    def export(self, kind, name):
        self.do("/api/export", {"kind": kind, "name": name})
        return self.dir / name

    def ask(self, prompt, tokens=6, **how):
        status, text = self.send("POST", "/api/ask", {"prompt": prompt, "tokens": tokens} | how)
        assert status == 200, text
        told = [json.loads(line) for line in text.splitlines()]
        assert told[-1] == {"done": True}, told
        return "".join(line.get("text", "") for line in told)

    def n_files(self):
        """How many files and connections it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def peak_bytes(self):
        return self.memory("VmHWM")

    def held_bytes(self):
        return self.memory("VmRSS")

    def memory(self, kind):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(kind))

    def end(self, signal=None):
        """What it said on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(signal) if signal else self.process.terminate()
        if not self.process.stderr.closed:
            self.said = self.process.communicate(timeout=LIMIT_S)[1]
        return self.said
