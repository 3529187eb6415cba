"""The package's first example, and what options and requests mean."""
import json
import warnings

import lancet
import pytest
from conftest import DATA, FACTS, MODEL, weights_hash


def test_edit_generate_undo_save_restore(session, options, tmp_path):
    unedited = weights_hash(session)
    before = session.generate("Piranha Games, created in", tokens=8)
    edit = session.edit(FACTS[:1])
    edited = weights_hash(session)
    assert edited != unedited and edit.successes == 1
    assert edit.requests[0].success is True and edit.requests[0].after["efficacy_argmax"] == 1.0
    assert edit.metrics["efficacy_argmax"]["before"] == 0.0
    assert session.generate(["Piranha Games, created in"], tokens=8) == [session.generate("Piranha Games, created in", tokens=8)]
    assert session.generate("Piranha Games, created in", tokens=8).startswith(" London") and not before.startswith(" London")
    assert session.evaluate(FACTS[:1])["efficacy_argmax"] == 1.0
    session.save(tmp_path / "mine")
    session.save_edits(tmp_path / "edits")
    assert json.loads((session.export_adapter(tmp_path / "lora") and (tmp_path / "lora" / "adapter_config.json").read_text()))["r"] == 1
    with pytest.raises(lancet.ConfigError, match="mine"):
        session.save(tmp_path / "mine")
    session.save(tmp_path / "mine", overwrite=True)
    assert [(each.id, each.target, each.batch, each.method) for each in session.edits] == [("0", "London", 0, "memit")]
    assert session.undo(edit)["mode"] == "last"
    assert weights_hash(session) == unedited and len(session.edits) == 0 and session.undo() is None
    for folder in ("mine", "edits"):
        with lancet.open(MODEL, edits=tmp_path / folder, **options) as other:
            assert weights_hash(other) == edited and other.edits.ids == ["0"]
            assert other.edit(FACTS[1:2]).ids == ["1"]  # the next number that none has


def test_what_a_later_edit_replaced_is_told_and_measured_again(session):
    session.edit(FACTS[:1])
    with pytest.warns(lancet.EditWarning, match="contradiction with 1 edit that stands"):
        session.edit({**FACTS[0], "target": "Rome"})
    assert [(edit.target, edit.replaced_by) for edit in session.edits] == [("London", "1"), ("Rome", None)]
    assert session.edits[0].success is True and "replaced by '1'" in repr(session.edits[0])  # as it was measured then
    measured = session.measure()
    assert [(edit.id, edit.success) for edit in measured] == [("0", False), ("1", True)]
    assert measured[0].after["efficacy_argmax"] == 0.0


def test_any_edit_is_taken_back(session):
    first, second = session.edit(FACTS[:2]), session.edit(FACTS[2:])
    assert (first.ids, second.ids) == (["0", "1"], ["2"])
    undone = session.undo("0")
    assert undone["mode"] == "downdate" and undone["edits"] == ["0"] and session.edits.ids == ["1", "2"]
    assert session.undo(["1", "2"])["mode"] == "last" and not session.edits


def test_options_of_an_edit_lie_over_those_of_open(session):
    def layers(edit):
        return sorted(name.split(".")[2] for name in edit.deltas)

    edit = session.edit(FACTS[:1], layers=[1])
    assert layers(edit) == ["1"] and edit.report["values"]["contexts_per_step"] == session.edit(FACTS[1:2], layers=[1]).report["values"]["contexts_per_step"]
    session.undo(), session.undo()
    assert layers(session.edit(FACTS[:1])) == ["0", "1"], "an edit that names none has those of open"
    with pytest.raises(lancet.ConfigError, match="edits stand"):
        session.edit(FACTS[1:2], method="rome", layers=[1])
    session.undo()
    other = session.edit(FACTS[:1], method="ft", modules={"down": [1]}, steps=2, set={"editor.lr": 0.001})
    assert other.method == "ft", "with none of memit's options, which ft would refuse"


def test_wrong_options_are_told(options):
    with pytest.raises(lancet.ConfigError, match="covariance_weight"):
        lancet.open(MODEL, **{**options, "covariance_wieght": 3})
    with pytest.raises(lancet.ConfigError, match="^dtype: "):
        lancet.open(MODEL, **{**options, "set": {"run.dtype": "f13"}})
    with pytest.raises(lancet.ConfigError, match="nan|JSON"):
        lancet.open(MODEL, **{**options, "covariance_weight": float("nan")})
    with pytest.raises(lancet.ConfigError, match="expected numbers"):
        lancet.open(MODEL, **{**options, "covariance_weight": object()})
    with pytest.raises(lancet.ConfigError, match="first argument"):
        lancet.open(MODEL, set={"model": "x"}, progress=False)


def test_requests_are_texts_as_they_are(session):
    facts = [{"id": "x", "prompt": "{} \"is\"\tat: 'é\U0001f600' #", "subject": "yes", "target": "1998"}]
    edit = session.edit(facts, values={"steps": 1})
    assert (edit.requests[0].prompt, edit.requests[0].target) == ("yes \"is\"\tat: 'é\U0001f600' #", "1998")
    with pytest.raises(lancet.ConfigError, match="(?s)record 0.*{}.*record 1.*subjct"):
        session.edit([{"prompt": "{} {}", "subject": "a", "target": "b"}, {"prompt": "{}", "subjct": "a", "target": "b"}])
    with pytest.raises(lancet.ConfigError, match="expected a dict"):
        session.edit(["Rome"])
    assert session.edits.ids == ["x"]


def test_request_files_are_read(session):
    path = DATA / "requests" / "demo.json"
    records = lancet.load_requests(path, limit=2)
    assert len(records) == 2 and lancet.load_requests(path, skip=1, limit=1)[0]["id"] == records[1]["id"]
    edit = session.edit(records, values={"steps": 1}, evaluate=["efficacy", "paraphrase"])
    assert edit.ids == [record["id"] for record in records] and "paraphrase_prob" in edit.metrics
    with pytest.raises(lancet.ConfigError, match="none.json"):
        lancet.load_requests("none.json")


def test_tables_are_flat(session):
    edit = session.edit(FACTS[:2], values={"steps": 1})
    for table in (edit.table(), session.edits.table(), session.evaluate(FACTS[:2]).table()):
        assert len(table) == 2 and all(not isinstance(value, (dict, list)) for row in table for value in row.values())
    assert edit.table()[0]["efficacy_argmax.before"] == edit.requests[0].before["efficacy_argmax"]


def test_a_report_shows_itself_escaped(session):
    mark = "<script>alert('x')</script>"
    edit = session.edit([{"prompt": "{} is & was", "subject": mark, "target": "<b>"}], values={"steps": 1})
    page = edit._repr_html_()
    assert "<script" not in page and "&lt;script&gt;" in page and "&lt;b&gt;" in page and "is &amp; was" in page
    assert "http" not in page and "efficacy_argmax" in page


def test_evaluation_is_by_the_sessions_protocols(options):
    with lancet.open(MODEL, **{**options, "evaluate": ["efficacy", "generation"]}) as session:
        session.edit(FACTS[:1], method="rome", layers=[1], evaluate=["efficacy"], values={"steps": 1})
        assert "generation_exact" in session.evaluate(FACTS[:1]).metrics
        assert "generation_exact" not in session.evaluate(FACTS[:1], evaluate=["efficacy"]).metrics
        assert session.edits[0].method == "rome"


def test_samples_by_seed(session):
    one = [session.generate("Piranha Games, created in", tokens=6, top_k=0, temperature=2.0, seed=seed) for seed in (1, 1, 2)]
    assert one[0] == one[1] != one[2]


def test_any_sampling_argument_samples(session):
    ask = lambda **how: session.generate("Piranha Games, created in", tokens=6, **how)  # noqa: E731
    likeliest = ask()
    assert ask(top_k=1) == ask(top_p=1e-9) == likeliest
    assert ask(temperature=5.0, seed=1) != likeliest and ask(temperature=5.0, seed=1) == ask(temperature=5.0, top_k=0, top_p=1.0, seed=1)
    with pytest.raises(lancet.ConfigError, match="sample with temperature"):
        ask(seed=1)


def test_a_model_that_is_none_of_ours_is_told(session):
    with pytest.raises(lancet.ConfigError, match="hf_model returned before, got int"):
        session.hf_model(5)
    with pytest.raises(lancet.ConfigError, match="expected a job file or a dict, got an empty name"):
        lancet.run("")


def test_warnings_and_lines_go_where_python_has_them(session, caplog):
    with pytest.warns(lancet.EditWarning, match="white space") as told, caplog.at_level("INFO", logger="lancet"):
        session.edit([{"prompt": "{} is ", "subject": "Rome", "target": "x"}], values={"steps": 1}, method="memit", layers=[1], set={"editor.contexts": {"generate": 0}})
    assert told[0].filename == __file__
    unedited = session.undo() and weights_hash(session)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(lancet.EditWarning):
            session.edit([{"prompt": "{} is ", "subject": "Rome", "target": "x"}], values={"steps": 1})
    assert weights_hash(session) == unedited and not session.edits


def test_closed(options):
    session = lancet.open(MODEL, **options)
    assert "closed" not in repr(session)
    session.close(), session.close()
    assert session.closed and "closed" in repr(session)
    with pytest.raises(lancet.ConfigError, match="closed"):
        session.generate("x")


def test_errors_have_the_programs_codes(tmp_path, tiny):
    codes = {"Error": 70, "ConfigError": 2, "CheckpointError": 3, "TokenizerError": 3, "PlacementError": 4, "NumericError": 5, "CollectiveError": 6}
    for name, code in {**codes, "Cancelled": 130}.items():
        assert issubclass(getattr(lancet, name), lancet.Error) and getattr(lancet, name).code == code
    assert issubclass(lancet.ConfigError, ValueError)
    (tmp_path / "empty").mkdir()
    with pytest.raises(lancet.CheckpointError, match="empty") as error:
        lancet.open(tmp_path / "empty", progress=False)
    assert error.value.code == 3
    with pytest.raises(lancet.PlacementError, match="cuda:77"):
        lancet.open(tiny, devices=["cuda:77"], progress=False)
    import shutil

    shutil.copytree(tiny, tmp_path / "spoiled")
    (tmp_path / "spoiled" / "tokenizer.json").write_text("{}")
    with pytest.raises(lancet.TokenizerError):
        lancet.open(tmp_path / "spoiled", progress=False)
