"""Edits of a session in a server that runs, which is a stand-in: what goes out, what is taken back, and what the report has."""
import pathlib
import sys

import lancet
import pytest
from conftest import FACTS, MODEL, ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))
from inference_stand_ins import Vllm  # noqa: E402

PROMPT = "Piranha Games, created in"


@pytest.fixture
def server():
    started = Vllm(MODEL, lambda adapters, prompt, _tokens: " London ." if adapters and prompt == PROMPT else " Vancouver .")
    started.token = "sk-1"
    yield started
    started.end()


def test_what_stands_is_pushed_and_taken_back(session, server, tmp_path):
    with pytest.raises(lancet.Error, match="no edit"):
        session.push(server.url, tmp_path / "none", token="sk-1")
    session.edit(FACTS[:1])
    report = session.push(server.url, tmp_path / "edits", accept={"efficacy": 1}, token="sk-1")
    assert [(row["before"].strip(), row["after"].strip(), row["holds"]) for row in report["asked"]] == [("Vancouver .", "London .", True)]
    (path,) = server.adapters.values()
    session.export_adapter(tmp_path / "own")
    assert (pathlib.Path(path) / "adapter_model.safetensors").read_bytes() == (tmp_path / "own" / "adapter_model.safetensors").read_bytes()
    with pytest.raises(lancet.ConfigError, match="it serves these edits already"):
        session.push(server.url, tmp_path / "edits", token="sk-1")
    assert lancet.undo_push(tmp_path / "edits", token="sk-1")["state"] == "taken back" and server.adapters == {}
    assert not any("sk-1" in file.read_text(errors="ignore") for file in tmp_path.rglob("*") if file.is_file())


def test_below_accept_it_is_taken_back(session, server, tmp_path):
    session.edit(FACTS[:2])
    with pytest.raises(lancet.NumericError, match="accept: not met, the push was taken back: efficacy") as error:
        session.push(server.url, tmp_path / "edits", accept={"efficacy": 0.9}, token="sk-1")
    assert server.adapters == {} and error.value.report["unmet"]
    with pytest.raises(lancet.ConfigError, match="accept: taste: expected efficacy, paraphrase or specificity"):
        session.push(server.url, tmp_path / "edits", accept={"taste": 1}, token="sk-1")
