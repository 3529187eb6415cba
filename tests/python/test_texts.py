"""Text that UTF-8 cannot hold, and text with U+0000, wherever a public call takes text or a path: lancet's error, which can be printed,
and nothing is written."""
import inspect
import pathlib

import pytest
from conftest import EDITOR, FACTS, MODEL

import lancet
from lancet.compat import easyedit

BAD = {"half a character": "\ud800", "zero": "a\0.b"}
SAYS = {"half a character": "U+D800", "zero": "U+0000"}
FACT = FACTS[0]
JOB = {"model": str(MODEL), "requests": [FACT], "editor": EDITOR, "output": {"dir": "out"}}

CALLS = {
    "open": lambda bad: lancet.open(bad),
    "open path": lambda bad: lancet.open(pathlib.PurePosixPath(bad)),
    "open edits": lambda bad: lancet.open(MODEL, edits=bad),
    "open devices": lambda bad: lancet.open(MODEL, devices=bad),
    "open device": lambda bad: lancet.open(MODEL, device=bad),
    "open list of devices": lambda bad: lancet.open(MODEL, devices=["cpu", bad]),
    "open dtype": lambda bad: lancet.open(MODEL, dtype=bad),
    "open method": lambda bad: lancet.open(MODEL, method=bad),
    "open set key": lambda bad: lancet.open(MODEL, set={bad: 1}),
    "open set value": lambda bad: lancet.open(MODEL, set={"run.dtype": bad}),
    "open keyword": lambda bad: lancet.open(MODEL, **{bad: 1}),
    "open contexts": lambda bad: lancet.open(MODEL, contexts=[bad]),
    "open values": lambda bad: lancet.open(MODEL, values={bad: 1}),
    "open statistics": lambda bad: lancet.open(MODEL, statistics={"corpus": pathlib.PurePosixPath(bad)}),
    "open evaluate": lambda bad: lancet.open(MODEL, evaluate=[bad]),
    "edit": lambda bad: lancet.edit(MODEL, prompts=[bad], target_new=["x"], subjects=["y"]),
    "edit portability": lambda bad: lancet.edit(MODEL, prompts="a", target_new="b", subjects="a", portability_inputs={"s": {"prompt": "p", "ground_truth": bad}}),
    "run": lambda bad: lancet.run(bad),
    "run dict": lambda bad: lancet.run(JOB | {"model": bad}),
    "run key": lambda bad: lancet.run(JOB | {bad: 1}),
    "run requests": lambda bad: lancet.run(JOB | {"requests": [FACT | {"target": bad}]}),
    "run set": lambda bad: lancet.run(JOB, set={"output.dir": bad}),
    "erase": lambda bad: lancet.erase(bad),
    "apply": lambda bad: lancet.apply(bad, "out"),
    "apply out": lambda bad: lancet.apply("edits", bad),
    "apply model": lambda bad: lancet.apply("edits", "out", model=bad),
    "apply other_base": lambda bad: lancet.apply("edits", "out", other_base=bad),
    "apply set": lambda bad: lancet.apply("edits", "out", set={bad: 1}),
    "undo": lambda bad: lancet.undo(bad),
    "undo ids": lambda bad: lancet.undo("output", [bad]),
    "undo where": lambda bad: lancet.undo("output", where=[bad]),
    "undo mode": lambda bad: lancet.undo("output", mode=bad),
    "undo out": lambda bad: lancet.undo("output", out=bad),
    "merge": lambda bad: lancet.merge(["a", bad], "out"),
    "merge out": lambda bad: lancet.merge(["a", "b"], bad),
    "merge prefer": lambda bad: lancet.merge(["a", "b"], "out", prefer=bad),
    "merge drop": lambda bad: lancet.merge(["a", "b"], "out", drop=[bad]),
    "load_requests": lambda bad: lancet.load_requests(bad),
    "load_requests format": lambda bad: lancet.load_requests("facts.json", format=bad),
    "list_presets": lambda bad: lancet.list_presets(bad),
    "undo_push": lambda bad: lancet.undo_push(bad),
    "undo_push url": lambda bad: lancet.undo_push("edits", url=bad),
    "undo_push token": lambda bad: lancet.undo_push("edits", token=bad),
    "easyedit hparams": lambda bad: easyedit.MEMITHyperParams.from_hparams(bad),
}
METHODS = {
    "edit prompt": lambda session, bad: session.edit([FACT | {"prompt": "{} " + bad}]),
    "edit subject": lambda session, bad: session.edit(FACT | {"subject": bad}),
    "edit id": lambda session, bad: session.edit(FACT | {"id": bad}),
    "edit key": lambda session, bad: session.edit(FACT | {bad: "x"}),
    "edit section": lambda session, bad: session.edit(FACT | {"locality": {"s": [{"prompt": "p", "answers": [[bad]]}]}}),
    "edit method": lambda session, bad: session.edit(FACT, method=bad),
    "edit option": lambda session, bad: session.edit(FACT, contexts=[bad]),
    "evaluate": lambda session, bad: session.evaluate(FACT | {"target_true": bad}),
    "evaluate by": lambda session, bad: session.evaluate(FACT, evaluate=[bad]),
    "generate": lambda session, bad: session.generate(bad),
    "generate several": lambda session, bad: session.generate(["a", bad]),
    "undo": lambda session, bad: session.undo(bad),
    "undo several": lambda session, bad: session.undo(["a", bad]),
    "save": lambda session, bad: session.save(bad),
    "save_edits": lambda session, bad: session.save_edits(bad),
    "export_adapter": lambda session, bad: session.export_adapter(bad),
    "export_adapter format": lambda session, bad: session.export_adapter("adapter", format=bad),
    "push": lambda session, bad: session.push(bad, "edits"),
    "push edits": lambda session, bad: session.push("http://127.0.0.1:9", bad),
    "push name": lambda session, bad: session.push("http://127.0.0.1:9", "edits", name=bad),
    "push server_path": lambda session, bad: session.push("http://127.0.0.1:9", "edits", server_path=bad),
    "push accept": lambda session, bad: session.push("http://127.0.0.1:9", "edits", accept={bad: 0.5}),
    "restore": lambda session, bad: session.restore(bad),
}
NO_TEXT = {"cancel", "close", "closed", "edits", "measure", "hf_model", "to_transformers", "apply_to"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def tiny_session(tiny):
    with lancet.open(tiny, device="cpu", progress=False) as opened:
        yield opened


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("call", CALLS)
def test_functions(here, call, kind):
    with pytest.raises(lancet.ConfigError, match=SAYS[kind].replace("+", r"\+")) as error:
        CALLS[call](BAD[kind])
    str(error.value).encode()


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("method", METHODS)
def test_methods(here, tiny_session, method, kind):
    with pytest.raises(lancet.ConfigError, match=SAYS[kind].replace("+", r"\+")) as error:
        METHODS[method](tiny_session, BAD[kind])
    str(error.value).encode()


def test_every_public_call_is_tried():
    functions = {name for name in lancet.__all__ if inspect.isfunction(getattr(lancet, name))} | {"open"}
    assert functions == {name.split()[0] for name in CALLS} - {"easyedit"}
    methods = {name for name in vars(lancet.Session) if not name.startswith("_")}
    assert methods - NO_TEXT == {name.split()[0] for name in METHODS}


def test_what_is_no_text_and_no_path_is_told(here, tiny_session):
    for call, words in (
        (lambda: tiny_session.generate(5), "prompts: expected a text or a list of texts, got int"),
        (lambda: tiny_session.generate(["a", None]), r"prompts\[1\]: expected text, got NoneType"),
        (lambda: tiny_session.save(5), "folder: expected a path, got int"),
        (lambda: lancet.load_requests(None), "path: expected a path, got NoneType"),
        (lambda: lancet.run(JOB | {"requests": [FACT | {"prompt": "a\0"}]}), r"job\.requests\[0\]\.prompt: 'a\\x00': character 1 is U\+0000"),
    ):
        with pytest.raises(lancet.ConfigError, match=words):
            call()


def test_files_with_such_text_are_refused_by_their_place(here, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "facts.json").write_text('[{"prompt": "{} is", "subject": "Rome", "target": "a\\u0000b"}]')
    with pytest.raises(lancet.ConfigError, match=r"facts\.json: record 0: target: has the character U\+0000"):
        lancet.load_requests(folder / "facts.json")
    (folder / "half.json").write_text('[{"prompt": "{} is", "subject": "Rome", "target": "\\ud800"}]')
    with pytest.raises(lancet.ConfigError, match="half.json: not valid JSON"):
        lancet.load_requests(folder / "half.json")
    (folder / "job.yaml").write_text(f'model: "{MODEL}\\0x"\nrequests: [{{prompt: "a", target: "b"}}]\neditor: {{method: memit}}\noutput: {{dir: out}}\n')
    with pytest.raises(lancet.ConfigError, match=r"job\.yaml:1: model: expected a path"):
        lancet.run(folder / "job.yaml")
