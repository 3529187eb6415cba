"""What Python's users expect of any package: tables in and out, pickles, names of the field, errors in a call's words."""
import builtins
import inspect
import pickle

import lancet
import pytest
import torch
from conftest import FACTS, MODEL, ROOT
from lancet import _options, _words

PROMPT = "Piranha Games, created in"


def test_facts_come_as_a_frame_and_results_go_as_one(session):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FACTS[:2]).assign(target_true=["Vancouver", None])
    edit = session.edit(frame)
    table = edit.to_frame()
    assert list(table["target"]) == [fact["target"] for fact in FACTS[:2]] and list(table) == list(edit.table()[0])
    assert edit["efficacy_argmax"] == edit.metrics["efficacy_argmax"]["after"]
    assert list(session.edits.to_frame()["id"]) == edit.ids
    measured = session.evaluate(frame)
    for i, (now, then) in enumerate(zip(measured.requests, edit.requests, strict=True)):
        assert (now.id, now.prompt, now.success) == (str(i), then.prompt, then.success)
        assert now.after == {name: value for name, value in then.after.items() if not name.startswith("subject_")}  # that needs a before
    assert list(measured.to_frame()["efficacy_argmax"]) == [row["efficacy_argmax"] for row in measured.table()] == [row.after["efficacy_argmax"] for row in edit.requests]


def test_results_travel(session):
    edit = session.edit(FACTS[:1])
    for result in (edit, session.edits, session.evaluate(FACTS[0])):
        assert pickle.loads(pickle.dumps(result)).__dict__.keys() == result.__dict__.keys()
    again = pickle.loads(pickle.dumps(edit))
    assert again.report == edit.report and again.key_edits == edit.key_edits
    for name, deltas in edit.deltas.items():
        for (left, right), (own_left, own_right) in zip(again.deltas[name], deltas, strict=True):
            assert torch.equal(left, own_left) and torch.equal(right, own_right) and left.data_ptr() != own_left.data_ptr()
    assert all(torch.equal(*pair) for pair in zip(again.losses, edit.losses, strict=True))
    assert pickle.loads(pickle.dumps(again)).report == edit.report


def test_a_page_has_answers_before_and_after(session):
    page = session.edit(FACTS[:1], evaluate=["generation"])._repr_html_()
    assert "answer before" in page and "Vancouver" in page and page.index("Vancouver") < page.index("London.")


def test_names_of_transformers(session):
    greedy = session.generate(PROMPT, tokens=5)
    assert session.generate(PROMPT, max_new_tokens=5, do_sample=False) == greedy
    assert session.generate(PROMPT, max_new_tokens=5, do_sample=True, seed=3) == session.generate(PROMPT, tokens=5, temperature=1.0, seed=3)
    with pytest.raises(lancet.ConfigError, match="do_sample=False: .* top_k would change nothing"):
        session.generate(PROMPT, do_sample=False, top_k=4)
    with pytest.raises(lancet.ConfigError, match="max_new_tokens is another name of tokens"):
        session.generate(PROMPT, tokens=5, max_new_tokens=6)


def test_devices_by_the_names_of_torch(tiny):
    with lancet.open(tiny, device=torch.device("cpu"), progress=False) as session:
        assert session.generate("a", max_new_tokens=1) is not None
    with pytest.raises(lancet.PlacementError, match="cuda:0"):  # this build has no GPU
        lancet.open(tiny, device="cuda", progress=False)
    with pytest.raises(lancet.ConfigError, match="device is another name of devices"):
        lancet.open(tiny, device="cpu", devices="cpu")


def test_overwrite_is_said_in_pythons_words(session, tmp_path):
    session.edit(FACTS[:1])
    session.save(tmp_path / "out")
    with pytest.raises(lancet.ConfigError, match="give overwrite=True to replace it"):
        session.save(tmp_path / "out")
    session.save(tmp_path / "out", overwrite=True)
    with pytest.raises(lancet.ConfigError, match=r"\(max_new_tokens=\)") as error:
        session.generate("a", tokens=600)
    assert "--" not in str(error.value)
    assert _words.of_python("choose --top-k or --out: x--y") == "choose top_k= or x--y"
    with pytest.raises(lancet.ConfigError, match=r"^layers: 99: expected 0 to"):
        session.edit(FACTS[1:2], layers=[99])
    with pytest.raises(lancet.ConfigError, match=r"^values\.stesp: unknown key; did you mean steps"):
        session.edit(FACTS[1:2], values={"stesp": 2})
    with pytest.raises(lancet.ConfigError, match="session.edits has those that do"):
        session.undo("no such")
    with pytest.raises(lancet.CheckpointError, match="hf download ORG/NAME --local-dir FOLDER"):
        lancet.open(tmp_path / "nowhere", progress=False)


def test_editors_options_are_typed_as_declared(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import python_options

    assert python_options.FILE.read_text() == python_options.text_of(_options.DECLARED["editor"]), ".venv/bin/python tools/python_options.py --write"
    for function in (lancet.open, lancet.Session.edit, lancet.edit):
        parameters = inspect.signature(function).parameters
        assert set(_options.DECLARED["editor"]) <= set(parameters)
        assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
        with pytest.raises(lancet.ConfigError, match=rf"layrs: unknown keyword of {function.__name__}\(\); did you mean layers"):
            lancet.open(MODEL, layrs=[1]) if function is lancet.open else lancet.edit(MODEL, prompts="a", target_new="b", layrs=[1]) if function is lancet.edit else lancet.Session.edit(None, [], layrs=[1])


def test_nothing_public_hides_a_builtin():
    assert not set(lancet.__all__) & set(dir(builtins))
    assert all(hasattr(lancet, name) for name in lancet.__all__)


def test_presets_are_listed():
    presets = {preset["name"]: preset for preset in lancet.list_presets()}
    assert presets["llama-3-8b-memit"]["method"] == "memit" and presets["llama-3-8b-memit"]["editor"]["layers"] == [4, 5, 6, 7, 8]
    assert lancet.list_presets(MODEL) == [preset for preset in presets.values() if any("demo" in model for model in preset["models"])]


def test_a_name_of_the_hub_is_found_in_its_cache(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(lancet.ConfigError, match="download it with: hf download someone/tiny"):
        lancet.open("someone/tiny", progress=False)
    stored = tmp_path / "models--someone--tiny"
    (stored / "refs").mkdir(parents=True)
    (stored / "refs" / "main").write_text("abc")
    (stored / "snapshots").mkdir()
    (stored / "snapshots" / "abc").symlink_to(tiny)
    with lancet.open("someone/tiny", progress=False) as session, lancet.open(tiny, progress=False) as own:
        assert session.generate(PROMPT, tokens=4) == own.generate(PROMPT, tokens=4)
