"""`lancet serve` through random edits, undos, kills and starts, some of the kills amid the work: what stood stands again.

Five sequences, 300 with LANCET_TEST_FULL=1 (make test-full), on a tiny model of random weights.
"""
import hashlib
import itertools
import os
import random
import shutil
import signal
import time

import pytest
from conftest import DATA, LANCET
from random_model import write_random_model
from served import Served

SEED = 20261125
SEQUENCES = 300 if os.environ.get("LANCET_TEST_FULL") else 5
STEPS = 8
EDITOR = "editor={method: memit, layers: [0, 1], covariance_weight: 20, values: {steps: 2}, contexts: ['{}']}"
FACTS = [{"prompt": "{} lies in", "subject": subject, "target": target}
         for subject, target in itertools.product(("France", "Rome", "Vancouver", "Berlin"), ("London", "Paris"))]  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny") / "model"
    shutil.copytree(DATA / "demo-model", folder, ignore=shutil.ignore_patterns("lancet.yaml", "*.safetensors", "config.json"))
    write_random_model(folder, vocab=4096, bos=1, eos=2)
    return folder


class Desk:
    """A server on one folder, one after another, and what is known of its edits."""

    def __init__(self, lancet, model, folder):
        self.lancet, self.model, self.folder = lancet, model, folder
        self.settings = [EDITOR, f"statistics.corpus={DATA / 'requests' / 'demo-corpus.txt'}", "statistics.tokens=2000", "statistics.ridge=1e-3",
                         f"statistics.cache={model.parent / 'cache'}", "run.dtype=f32"]  # fmt: skip
        self.n_exports, self.slowest_s = 0, 0.2
        self.start()

    def start(self):
        self.server = Served(LANCET, self.folder, "--model", self.model, "--devices", "cpu", settings=self.settings)
        assert not [path.name for path in self.server.dir.glob(".*lancet-*")], "nothing of a killed one is left"

    def edits(self):
        return self.server.edits()["list"]

    def ids(self):
        return sorted(edit["id"] for edit in self.edits()["edits"])

    def weights(self):
        self.n_exports += 1
        folder = self.server.export("checkpoint", f"export-{self.n_exports}")
        digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        shutil.rmtree(folder)
        return digest

    def kept_weights(self):
        """By `lancet apply` of what the folder holds."""
        out = self.folder / "applied"
        applied = self.lancet.run("apply", self.server.dir / "edits-state", "--to", self.model, "--out", out)
        assert applied.returncode == 0, applied.stderr
        digest = hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()
        shutil.rmtree(out)
        return digest

    def order(self, way, choose):
        """An edit, or an undo of the last edit or of one: its number, and the ids that stand once it is done."""
        before = self.ids()
        if way == "edit" or not before:
            return self.server.order("/api/edit", {"facts": [choose.choice(FACTS)]}), None
        body = {"edits_version": self.server.edits()["edits_version"]}
        if way == "undo one":
            body["ids"] = [choose.choice(before)]
            return self.server.order("/api/undo", body), [each for each in before if each not in body["ids"]]
        return self.server.order("/api/undo", body), None

    def kill(self):
        self.server.end(signal.SIGKILL)


def change(desk, choose):
    begun = time.monotonic()
    item, _ = desk.order(choose.choice(("edit", "edit", "undo", "undo one")), choose)
    ended = desk.server.end_of(item)
    assert ended["outcome"] == "done", ended
    assert desk.server.state()["unsaved"] == ""
    desk.slowest_s = max(desk.slowest_s, time.monotonic() - begun)


def kill_at_rest(desk):
    edits, weights = desk.edits(), desk.weights()
    desk.kill()
    desk.start()
    assert desk.edits() == edits and desk.weights() == weights


def kill_at_work(desk, choose):
    """Then what stands is what stood before, or after that work."""
    edits, ids, weights = desk.edits(), desk.ids(), desk.weights()
    _, after = desk.order(choose.choice(("edit", "undo", "undo one")), choose)
    time.sleep(choose.uniform(0, desk.slowest_s))
    desk.kill()
    desk.start()
    if desk.ids() == ids:
        assert desk.edits() == edits and desk.weights() == weights
        return
    now = desk.ids()
    if after is not None:
        assert now == after
    assert abs(len(now) - len(ids)) == 1 and (set(now) < set(ids) or set(ids) < set(now)), (ids, now)
    assert desk.weights() == (desk.kept_weights() if now else hashlib.sha256((desk.model / "model.safetensors").read_bytes()).hexdigest())


@pytest.mark.parametrize("sequence", range(SEQUENCES))
def test_what_stood_stands_again(lancet, model, tmp_path, sequence):
    choose = random.Random(f"{SEED} {sequence}")
    desk = Desk(lancet, model, tmp_path)
    try:
        for _ in range(STEPS):
            way = choose.random()
            if way < 0.6:
                change(desk, choose)
            elif way < 0.8:
                kill_at_rest(desk)
            else:
                kill_at_work(desk, choose)
        kill_at_rest(desk)
    finally:
        desk.server.end()
