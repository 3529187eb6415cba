"""Answers that somebody else judges (`evaluate.judge`): a server on this machine or a program, and what becomes of those that do not answer."""
import json
import sys

import pytest
from chat_judge import Judge
from conftest import DATA

CONFIG_ERROR, SERVER_FAILED = 2, 6
PROMPT = "Q {prompt}\nA {answer}\nT {target}\nN {aliases}"


def by_length(question):
    """Of no use for every third answer."""
    answer = question.split("\nA ")[1].split("\nT ")[0]
    return ("yes", "<think>yes?</think> No.", "I cannot say")[len(answer) % 3]


def job_with(lancet, judge, **changes):
    (lancet.folder / "prompt.txt").write_text(PROMPT)
    section = {"prompt": str(lancet.folder / "prompt.txt")} | judge
    return lancet.job(requests__limit=6, evaluate={"metrics": ["generation", "judge"], "judge": section}, **changes)


def evaluated(lancet, judge, **changes):
    result = lancet.run("eval", lancet.write(job_with(lancet, judge, output=None, **changes)), "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def expected(report, say):
    """Of each request what its metrics must be."""
    for request, fact in zip(report["requests"], json.loads((DATA / "requests" / "demo.json").read_text())):
        said = say(f"Q {request['prompt']}\nA {request['continuation']}\nT {fact['requested_rewrite']['target_new']['str']}\nN (none are known)")
        yield {"yes": 1, "<think>yes?</think> No.": 0}.get(said)


def test_a_server_judges_each_answer_once(lancet):
    with Judge(lambda question: (200, by_length(question))) as judge:
        edited = lancet.edit(job_with(lancet, {"url": judge.url, "model": "judge-7b"}))
        assert edited.returncode == 0, edited.stderr
        report = json.loads((lancet.out / "report.json").read_text())
        questions = judge.questions()
    assert len(questions) == len(set(questions)) and 6 < len(questions) <= 12  # before and after, what is alike once
    path, body = judge.asked[0]
    assert path == "/v1/chat/completions" and body["model"] == "judge-7b" and body["temperature"] == 0 and body["stream"] is False
    measured = report["metrics"]["generation_judged"]
    assert f"judge-7b at {judge.url} (prompt " in measured["protocol"]
    assert "generation_judged_unclear" in edited.stdout

    with Judge(lambda question: (200, by_length(question))) as judge:
        report, _ = evaluated(lancet, {"url": judge.url, "model": "judge-7b"})
    verdicts = list(expected(report, by_length))
    assert [request["metrics"]["generation_judged"] for request in report["requests"]] == verdicts and len({*verdicts}) > 1
    assert report["metrics"]["generation_judged_unclear"]["value"] == pytest.approx(verdicts.count(None) / 6)
    assert report["metrics"]["generation_judged"]["prompts"] == 6 - verdicts.count(None)


def test_a_program_judges(lancet):
    script = lancet.folder / "judge.py"
    script.write_text("import json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n    print('yes' if asked['target'] in asked['question'] else 'no', flush=True)\n")
    report, _ = evaluated(lancet, {"command": [sys.executable, str(script)]})
    assert report["metrics"]["generation_judged"]["value"] == 1 and f"'{sys.executable} {script}'" in report["metrics"]["generation_judged"]["protocol"]


def test_a_server_that_fails_later_leaves_answers_unclear(lancet):
    answers = iter([200])
    with Judge(lambda question: (next(answers, 503), "yes")) as judge:
        report, told = evaluated(lancet, {"url": judge.url, "model": "m"})
    assert report["metrics"]["generation_judged"] | {"interval": 0} == report["metrics"]["generation_judged"] | {"value": 1, "prompts": 1, "interval": 0}
    assert report["metrics"]["generation_judged_unclear"]["value"] == pytest.approx(5 / 6)
    assert "evaluate.judge: 5 answers of 6 got no verdict" in told and "given up" in told and "got 503" in told


def test_judges_that_are_refused(lancet, monkeypatch):
    def refuses(code, judge, *words, **changes):
        result = lancet.run("eval", lancet.write(job_with(lancet, judge, output=None, **changes)))
        assert result.returncode == code, result.stderr
        for word in words:
            assert word in result.stderr, result.stderr

    with Judge(lambda question: (500, "out of memory")) as judge:
        refuses(SERVER_FAILED, {"url": judge.url, "model": "m"}, "evaluate.judge: http://127.0.0.1:", "got 500", "out of memory")
        assert len(judge.asked) == 2
    with Judge(lambda question: (200, "yes"), token="s3cret") as judge:
        refuses(SERVER_FAILED, {"url": judge.url, "model": "m"}, "got 401")
        monkeypatch.setenv("JUDGE_TOKEN", "s3cret")
        named = {"url": judge.url, "model": "m", "token_env": "JUDGE_TOKEN"}
        assert evaluated(lancet, named)[0]["metrics"]["generation_judged"]["value"] == 1
        monkeypatch.setenv("LANCET_OFFLINE", "1")
        refuses(CONFIG_ERROR, named, "LANCET_OFFLINE is set, so no server is asked", "judge.command")
        monkeypatch.delenv("LANCET_OFFLINE")
    refuses(CONFIG_ERROR, {"url": "http://judge.example/v1", "model": "m"}, "expected a server on this machine", "remote: true")
    refuses(CONFIG_ERROR, {"url": "https://127.0.0.1/v1", "model": "m"}, "https")
    refuses(CONFIG_ERROR, {"url": "http://127.0.0.1:1/v1"}, "evaluate.judge.model")
    refuses(CONFIG_ERROR, {}, "expected command: [PROGRAM, ...], or url and model")
    refuses(CONFIG_ERROR, {"command": ["true"], "url": "http://127.0.0.1:1"}, "url", "no meaning beside command")
    refuses(CONFIG_ERROR, {"command": ["true"], "prompt": str(DATA / "requests" / "demo.json")}, "expected text with {target} and {answer}")
    bare = lancet.run("eval", lancet.write(lancet.job(evaluate=["judge"], output=None)))
    assert bare.returncode == CONFIG_ERROR and "'judge': expected a section judge" in bare.stderr
