"""tools/reword_requests.py: which texts of a model are other wordings of a fact, and the file that it writes, which lancet edits."""
import json
import subprocess
import sys

import pytest
from conftest import DATA, ROOT, run_ok

sys.path.insert(0, str(ROOT / "tools"))
import reword_requests  # noqa: E402


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" is a native speaker of French.\nSentence: more", "{} is a native speaker of"),
        ("'s mother tongue is French and", "{}'s mother tongue is"),
        (" speaks Frenchified words", None),  # another word
        (" is French", None),  # too short
        (" was born in the French town", None),  # the answer is no name there
        (" was {a} speaker of French", None),
        (" was a native of Spain", None),
        ("\n is a speaker of French", None),
    ],
)
def test_a_wording_ends_where_the_answer_comes(text, expected):
    assert reword_requests.wording(text, "French") == expected


def test_fields_of_both_kinds_of_records():
    flat = {"prompt": "{} is in", "subject": "Rome", "target": "Peru", "target_true": ["Italy", "Latium"], "paraphrases": "{} lies in"}
    assert reword_requests.fields(flat) == ("{} is in", "Rome", "Italy", {"Rome lies in"})
    rewrite = {"prompt": "{} is in", "subject": "Rome", "target_new": {"str": "Peru"}, "target_true": {"str": "Italy"}}
    assert reword_requests.fields({"requested_rewrite": rewrite, "paraphrase_prompts": ["Rome lies in"]}) == ("{} is in", "Rome", "Italy", {"Rome lies in"})
    assert reword_requests.fields({"prompt": "{} is in", "subject": "Rome", "target": "Peru"}) is None


class KnowsTheAnswer(reword_requests.Writer):
    """Writes what it is told, and finds shorter prompts likelier."""

    def __init__(self, texts, count):
        self.written, self.arguments = texts, type("Arguments", (), {"count": count})

    def texts(self, prompt):
        assert prompt.endswith("Sentence: Rome is in Italy.\nThe same in other words: Rome")
        return self.written

    def log_probability(self, prompt, answer):
        return -len(prompt) / 10


def test_the_likeliest_wordings_are_kept_without_paraphrases():
    texts = [" lies in Italy", " is a city in Italy", " lies in Italy", " is in Italy", " belongs to Italy", f" {'long ' * 10}in Italy"]
    found = KnowsTheAnswer(texts, 3).rewordings("{} is in", "Rome", "Italy", {"Rome belongs to"})
    assert found == ["{} lies in", "{} is a city in"], "neither the prompt, nor a paraphrase, nor what is unlikely"
    assert KnowsTheAnswer(texts, 1).rewordings("{} is in", "Rome", "Italy", set()) == ["{} lies in"]


def test_lancet_edits_what_it_writes(lancet):
    facts = lancet.folder / "facts.jsonl"
    lines = [{"id": "a", "prompt": "{} is located in", "subject": "Rome", "target": "Peru", "target_true": "Italy"},
             {"id": "b", "prompt": "{} is located in", "subject": "Oslo", "target": "Peru", "rewordings": ["The country of {} is"]}]  # fmt: skip
    facts.write_text("\n".join(map(json.dumps, lines)))
    out = lancet.folder / "reworded.json"
    command = [sys.executable, ROOT / "tools" / "reword_requests.py", "--model", DATA / "demo-model", facts, "--out", out, "--threads", "1"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    assert "2 of 2 facts" in done.stderr
    written = json.loads(out.read_text())
    assert written[1] == lines[1] and [{k: v for k, v in written[0].items() if k != "rewordings"}] == lines[:1]
    written[0]["rewordings"] = ["The land of {} is called", "{} belongs to"]
    out.write_text(json.dumps(written))
    job = lancet.job(requests={"path": str(out)}, evaluate=["efficacy"])
    run_ok(lancet.run("edit", lancet.write(job)))
    kept = [json.loads(line) for line in (lancet.out / "requests.jsonl").read_text().splitlines()]
    assert [record["rewordings"] for record in kept] == [written[0]["rewordings"], written[1]["rewordings"]]
    # and they are a part of the edit: without them it is another one
    others = lancet.folder / "others"
    for record in written:
        record.pop("rewordings")
    out.write_text(json.dumps(written))
    run_ok(lancet.run("edit", lancet.write(job | {"output": {"dir": str(others)}})))
    changed = [(folder / "model.safetensors").read_bytes() for folder in (lancet.out, others)]
    assert changed[0] != changed[1]


def test_methods_that_train_on_prompts_say_that_they_do_not(lancet):
    facts = lancet.folder / "facts.json"
    facts.write_text(json.dumps([{"prompt": "{} is located in", "subject": "Rome", "target": "Peru", "rewordings": ["{} belongs to"]}]))
    job = lancet.job(requests={"path": str(facts)}, evaluate=[], editor={"method": "ft-m", "steps": 1}, statistics=None)
    done = run_ok(lancet.run("edit", lancet.write(job)))
    assert "requests have rewordings, and this method trains on the prompts alone" in done.stderr
