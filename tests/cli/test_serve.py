"""`lancet serve` as a program speaks with it: what a page can do, what comes back after a restart or a kill, and who is refused."""
import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import DATA, LANCET
from pages import documents_of
from served import Served

DEMO = DATA / "demo-model"
FACTS = [
    {"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"},
    {"prompt": "{}, the", "subject": "Lerin Duarte", "target": "goaltender"},
    {"prompt": "{} is produced by", "subject": "Toyota Alphard", "target": "Chrysler"},
]
MORE = [
    {"prompt": "{} is in", "subject": "Kryvyi Rih", "target": "France"},
    {"prompt": "{} works in", "subject": "Antonia Fraser", "target": "Rome"},
]
PROMPT = "Piranha Games, created in"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return ["editor.values.steps=30", "statistics.tokens=4000", f"statistics.cache={cache}"]


@pytest.fixture
def start(tmp_path, settings):
    """Starts a server in the test's folder; the last one ends with the test."""
    started = []

    def start(*arguments, model=DEMO, more=()):
        started.append(Served(LANCET, tmp_path, "--model", model, *arguments, settings=[*settings, *more]))
        return started[-1]

    yield start
    for server in started:
        server.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory, settings):
    """For tests that change nothing, and say so. Its model does not know when to end."""
    folder = tmp_path_factory.mktemp("shared")
    model = shutil.copytree(DEMO, folder / "endless")
    (model / "generation_config.json").write_text('{"eos_token_id": 3}')
    server = Served(LANCET, folder, "--model", model, settings=[*settings, f"statistics.corpus={DATA / 'requests' / 'demo-corpus.txt'}"])
    yield server
    server.end()


def digest(folder, name="model.safetensors"):
    return hashlib.sha256((folder / name).read_bytes()).hexdigest()


def wait_for_stage(server, item, stage):
    """Whether the work came to the stage before it ended."""
    since = 0
    while True:
        state = server.state(since)
        since, running = state["state"], state["running"]
        if running and running["item"] == item and running["progress"]["stage"] == stage:
            return True
        if any(row["item"] == item for row in state["finished"]):
            return False


def test_ask_edit_undo_and_a_restart(start, lancet, settings, tmp_path):
    server = start()
    before = server.ask(PROMPT)
    assert "Vancouver" in before
    assert server.do("/api/edit", {"facts": FACTS}).startswith("3 of 3 edits took")
    edited = server.ask(PROMPT, tokens=400)
    assert "London" in edited and server.ask(PROMPT, weights="unedited") == before
    told = server.edits()
    assert server.state()["model_version"] == 1
    for request, fact in zip(told["result"]["requests"], FACTS, strict=True):
        assert request["target"] == fact["target"] and request["verdict"] == {"success": True, "cause": None, "why": None}
        assert fact["target"] in request["continuation"]["after"] and fact["target"] not in request["continuation"]["before"]
        assert request["metrics"]["efficacy_argmax"] == {"before": 0, "after": 1}
    metrics = {metric["name"]: metric for metric in told["result"]["metrics"]}
    assert metrics["efficacy_argmax"]["after"] == 1 and metrics["efficacy_argmax"]["prompts"] == 3
    assert [edit["id"] for edit in told["list"]["edits"]] == ["0", "1", "2"] and all(edit["success"] and edit["method"] == "memit" for edit in told["list"]["edits"])

    for how in ({}, {"temperature": 1.5, "seed": 3}):  # by both weights at once: a token by each in turn
        told_both = [line for line in ask_line_by_line(server, tokens=30, weights="both", **how) if "text" in line]
        for weights in ("unedited", "edited"):
            assert "".join(line["text"] for line in told_both if line["weights"] == weights) == server.ask(PROMPT, tokens=30, weights=weights, **how), how
        assert [line["weights"] for line in told_both[:4]] == ["unedited", "edited", "unedited", "edited"]

    # the bytes of the same edits by `lancet edit`, and by `lancet apply` of what was kept
    for asked in ("unedited", "both"):  # stopped while the weights are the unedited ones, or either
        lines = ask_line_by_line(server, weights=asked)
        item = next(lines)["item"]
        assert next(lines)["begun"] and server.send("POST", "/api/cancel", {"item": item})[0] == 200
        assert list(lines)[-1] in ({"cancelled": True}, {"done": True})
        assert server.ask(PROMPT, tokens=400) == edited
    job = lancet.write({"model": str(DEMO), "requests": FACTS, "output": {"dir": "edited"}})
    assert lancet.run("edit", job, *(f"--set={setting}" for setting in settings)).returncode == 0
    exported = server.export("checkpoint", "whole")
    assert digest(exported) == digest(lancet.folder / "edited") != digest(DEMO)
    applied = lancet.run("apply", server.dir / "edits-state", "--to", DEMO, "--out", "applied")
    assert applied.returncode == 0, applied.stderr
    assert digest(lancet.folder / "applied") == digest(exported)
    for how in ({}, {"temperature": 1.5, "seed": 3}):
        flags = [word for key, value in how.items() for word in (f"--{key}", str(value))]
        for model, weights in [(DEMO, "unedited"), (exported, "edited")]:
            told_there = lancet.run("generate", "--model", model, "--prompt", PROMPT, "--tokens", "6", "--json", *flags)
            assert json.loads(told_there.stdout.splitlines()[0])["text"] == server.ask(PROMPT, weights=weights, **how), (how, weights)
    assert server.get("/api/report.json")["format"] == "lancet-report-1"
    assert documents_of(server.get("/api/report.html").decode())["report"] == server.get("/api/report.json")

    assert server.undo("1").startswith("took back 1 fact; what this gives up: ")
    assert [edit["id"] for edit in server.edits()["list"]["edits"]] == ["0", "2"]
    assert server.edits()["result"] == told["result"] and server.edits()["result_is_past"] and not told["result_is_past"]
    (gone,) = server.edits()["list"]["undone"]
    assert gone["edits"] == ["1"] and gone["facts"] == [FACTS[1] | {"target_true": "", "paraphrases": [], "neighborhood": []}]
    fewer = digest(server.export("checkpoint", "fewer"))
    assert fewer not in (digest(exported), digest(DEMO))
    assert server.do("/api/edit", {"facts": MORE[:1]}) and [edit["id"] for edit in server.edits()["list"]["edits"]] == ["3", "0", "2"]
    assert server.do("/api/measure", {}).startswith("3 of 3 earlier edits still hold (the model says the target")
    measured = {edit["id"]: edit for edit in server.edits()["list"]["edits"]}
    assert all(edit["success"] and edit["replaced_by"] is None for edit in measured.values()) and measured["0"]["measured"] >= measured["3"]["when"]
    assert server.undo() == "took back 1 fact"
    assert digest(server.export("checkpoint", "again")) == fewer, "the last edit goes to the bit"
    answers, edits = [server.ask(PROMPT), server.ask("Lerin Duarte, the")], server.edits()["list"]
    assert "stopped by SIGTERM; the edits are kept in" in server.end()
    assert server.process.returncode == -signal.SIGTERM

    server = start("--host", "0.0.0.0", "--port", "0")
    assert [server.ask(PROMPT), server.ask("Lerin Duarte, the")] == answers and server.edits()["list"] == edits
    assert server.edits()["result"] is None and server.send("GET", "/api/report.json")[0] == 400
    assert digest(server.export("checkpoint", "restarted")) == fewer
    assert "--host 0.0.0.0: whoever reaches this machine" in (err := server.end(signal.SIGINT)) and "restored  2 edits" in err, err


def test_adapters_load(start, tmp_path):
    server = start()
    refused = server.end_of(server.order("/api/export", {"kind": "peft", "name": "none"}))
    assert refused["outcome"] == "failed" and "no edit stands" in refused["message"] and not (server.dir / "none").exists()
    server.do("/api/edit", {"facts": FACTS})
    adapter, gguf = server.export("peft", "adapter"), server.export("gguf", "for-llama.cpp")
    assert (gguf / "adapter.gguf").read_bytes()[:4] == b"GGUF"
    again = server.end_of(server.order("/api/export", {"kind": "peft", "name": "adapter"}))
    assert again["outcome"] == "failed" and "serve/adapter is there already" in again["message"], again
    print(f"peak resident memory: {server.peak_bytes() / 1e6:.0f} MB")
    server.end()

    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(DEMO)
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32), adapter)
    for fact in FACTS:
        ids = tokenizer(fact["prompt"].replace("{}", fact["subject"]), return_tensors="pt").input_ids
        said = tokenizer.decode(model.generate(input_ids=ids, max_new_tokens=4, do_sample=False)[0, ids.shape[1] :])
        assert fact["target"] in said, (fact, said)


def test_an_edit_that_is_cancelled_changes_nothing(start):
    server = start()
    item = server.order("/api/edit", {"facts": FACTS[:1]})
    stages, state = [], server.state()
    while item not in [row["item"] for row in state["finished"]]:
        stage = state["running"] and state["running"]["progress"]["stage"]
        if stage and stage not in stages:
            stages.append(stage)
        state = server.state(state["state"])
    assert {"evaluate before", "values", "weights", "evaluate after"} <= set(stages), stages
    untouched, kept = digest(server.export("checkpoint", "untouched")), server.edits()["list"]
    for number, stage in enumerate(stages[-4:]):
        for attempt in range(10):
            item = server.order("/api/edit", {"facts": MORE})
            if wait_for_stage(server, item, stage):
                server.send("POST", "/api/cancel", {"item": item})
            ended = server.end_of(item)
            if ended["outcome"] == "cancelled":
                break
            server.undo()  # too late: the last step was done already
        assert ended["outcome"] == "cancelled", (stage, ended)
        assert digest(server.export("checkpoint", f"after-{number}")) == untouched, stage
    assert server.edits()["list"]["edits"] == kept["edits"]
    assert server.do("/api/edit", {"facts": MORE}), "and the next one works"


def test_a_first_edit_that_is_cancelled_in_its_statistics_changes_nothing(start, tmp_path):
    server = start(more=[f"statistics.cache={tmp_path / 'own'}", "statistics.tokens=150000"])
    item = server.order("/api/edit", {"facts": FACTS})
    assert wait_for_stage(server, item, "statistics")
    server.send("POST", "/api/cancel", {"item": item})
    assert server.end_of(item)["outcome"] == "cancelled" and server.edits()["list"]["edits"] == []
    assert digest(server.export("checkpoint", "whole")) == digest(DEMO)


def test_a_killed_edit_leaves_the_state_before_it(start):
    server = start()
    server.do("/api/edit", {"facts": FACTS[:2]})
    before, edits, report = digest(server.export("checkpoint", "before")), server.edits(), server.get("/api/report.json")
    item = server.order("/api/edit", {"facts": MORE})
    assert wait_for_stage(server, item, "values")
    server.end(signal.SIGKILL)
    server = start()
    told = server.edits()
    assert told["list"] == edits["list"] and digest(server.export("checkpoint", "behind")) == before
    assert told["result"] == edits["result"] is not None and server.get("/api/report.json") == report
    assert not [path.name for path in server.dir.iterdir() if path.name.startswith(".sent-")]
    server.end()

    (server.dir / "last-report.json").write_text("{}")
    server = start()
    told = server.edits()
    assert told["list"] == edits["list"] and told["result"] is None and server.send("GET", "/api/report.json")[0] == 400
    assert "before and after of the last edit do not come back: " in (err := server.end()) and "last-report.json" in err, err


def test_edits_after_an_undo_come_back_after_a_kill(start):
    server = start()
    server.do("/api/edit", {"facts": FACTS[:1]})
    server.undo()
    for fact in FACTS[1:2], MORE[:1]:
        server.do("/api/edit", {"facts": fact})
        assert server.state()["unsaved"] == ""
    edits = server.edits()["list"]
    (server.dir / ".edits-state.lancet-4194305").mkdir()  # of a process that cannot be: ids end before
    server.end(signal.SIGKILL)
    server = start()
    assert server.edits()["list"] == edits and len(edits["edits"]) == 2
    assert not [path.name for path in server.dir.iterdir() if ".lancet-" in path.name]


def test_edits_that_cannot_be_kept_stand_and_that_is_said(start):
    server = start()
    server.do("/api/edit", {"facts": FACTS[:1]})
    assert server.state()["unsaved"] == ""
    (server.dir / "edits-state" / "mine.txt").write_text("mine")
    server.do("/api/edit", {"facts": FACTS[1:]})
    unsaved = server.state()["unsaved"]
    assert unsaved.startswith("the edits stand, but are not kept for the next start: ") and "mine.txt" in unsaved
    assert len(server.edits()["list"]["edits"]) == 3 and "London" in server.ask(PROMPT)
    (server.dir / "edits-state" / "mine.txt").unlink()
    server.undo()
    assert server.state()["unsaved"] == ""


def test_two_clients_at_once(start):
    server = start()
    done = {}

    def client(name, work):
        done[name] = work()

    clients = [threading.Thread(target=client, args=pair) for pair in [
        ("first", lambda: server.do("/api/edit", {"facts": FACTS[:1]})), ("second", lambda: server.do("/api/edit", {"facts": FACTS[1:]})),
        ("asks", lambda: server.ask("Toyota Alphard is produced by"))]]  # fmt: skip
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert done["first"].startswith("1 of 1") and done["second"].startswith("2 of 2") and done["asks"]
    told = server.edits()
    assert {edit["target"] for edit in told["list"]["edits"]} == {fact["target"] for fact in FACTS} and len({edit["id"] for edit in told["list"]["edits"]}) == 3
    stale = server.end_of(server.order("/api/undo", {"edits_version": told["edits_version"] - 1}))
    assert stale["outcome"] == "failed" and "another tab" in stale["message"] and server.edits() == told

    items, refused = [], None
    while refused is None:
        status, got = server.send("POST", "/api/edit", {"facts": MORE})
        if status == 202:
            items.append(got["item"])
        else:
            refused = status, got["error"]
    assert refused[0] == 409 and "8 pieces of work wait already, while this runs: edit 2 facts" in refused[1], refused
    for item in reversed(items):
        server.send("POST", "/api/cancel", {"item": item})
    assert {server.end_of(item)["outcome"] for item in items} == {"cancelled"} and server.edits() == told


def test_an_answer_comes_while_it_is_made_and_can_be_stopped(shared):
    lines = ask_line_by_line(shared)
    item = next(lines)["item"]
    assert next(lines) == {"begun": True, "model_version": 0} and next(lines)["text"]
    assert shared.state()["running"]["item"] == item, "the first words are here, and the model is still at it"
    assert shared.send("POST", "/api/cancel", {"item": item}) == (200, {"cancelled": True})
    assert list(lines)[-1] == {"cancelled": True} and shared.end_of(item)["outcome"] == "cancelled"

    lines = ask_line_by_line(shared)  # a reader who goes away
    item = next(lines)["item"]
    lines.close()
    assert shared.end_of(item)["outcome"] == "cancelled"


def ask_line_by_line(server, tokens=490, **how):
    connection = server.connection()
    body = json.dumps({"prompt": PROMPT, "tokens": tokens} | how)
    connection.request("POST", "/api/ask", body, {"X-Lancet-Token": server.token, "Content-Type": "application/json"})
    reply = connection.getresponse()
    assert reply.status == 200 and reply.getheader("Transfer-Encoding") == "chunked"
    try:
        while line := reply.readline():
            yield json.loads(line)
    finally:
        reply.close()
        connection.close()


# ---- Files -------------------------------------------------------------------------------------------------------------------


def send_file(server, name, text):
    return server.send("POST", f"/api/file?name={name}", text, Content_Type="application/octet-stream")


def test_files_of_every_kind_are_facts(start):
    server = start("--requests", "4")
    rows = "prompt,subject,target\n" + "".join(f'"{fact["prompt"]}",{fact["subject"]},{fact["target"]}\n' for fact in FACTS)
    forms = {"a.json": json.dumps(FACTS), "a.jsonl": "\n".join(map(json.dumps, FACTS)), "a.csv": rows}
    sent = {name: send_file(server, name, text.encode()) for name, text in forms.items()}
    for name, (status, told) in sent.items():
        assert status == 200 and told["count"] == 3 and told["facts"][0]["target"] == "London" and told["name"] == name, told
    status, told = send_file(server, "counterfact.json", json.dumps(json.loads((DATA / "requests" / "demo.json").read_text())[:2]).encode())
    assert status == 200 and told["format"] == "counterfact"
    assert server.do("/api/edit", {"file": told["file"], "method": "memit"})
    assert {edit["id"] for edit in server.edits()["list"]["edits"]} == {"18920", "1885"}
    measured = {metric["name"] for metric in server.edits()["result"]["metrics"]}
    assert {"paraphrase_argmax", "specificity_argmax", "generation_exact"} <= measured, "what the file has is measured"
    again = server.end_of(server.order("/api/edit", {"file": told["file"]}))
    assert again["outcome"] == "failed" and "18920" in again["message"]
    for name, text, part in [("a.txt", b"x", ".json, .jsonl or .csv"), ("a.json", b"{", "a.json: "), ("a.json", b'[{"prompt": "x"}]', "a.json: record 0"),
                             ("a.json", b"[]", "a.json"), ("a.csv", b"\xff\xfe\x00", "a.csv")]:  # fmt: skip
        status, told = send_file(server, name, text)
        assert status == 400 and part in told["error"] and str(server.dir) not in told["error"], (name, told)
    many = send_file(server, "many.json", json.dumps(FACTS + MORE).encode())[1]
    status, told = server.send("POST", "/api/edit", {"file": many["file"]})
    assert status == 400 and "5 facts: expected at most 4 in one edit" in told["error"]
    assert server.send("POST", "/api/edit", {"file": 99})[0] == 400
    assert sorted(path.name for path in server.dir.iterdir()) == ["edits-state", "last-report.json"]


def test_the_command_line_chooses_method_port_and_folder(lancet):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["serve", "--model", DEMO, "--dir", "talk", "--port", port, "--json", "--devices", "cpu", "--set", "editor.method=rome", "--set", "run.dtype=f32"]
    process = subprocess.Popen([str(LANCET), *map(str, command)], cwd=lancet.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    told = json.loads(process.stdout.readline())
    assert told["edits"] == 0 and told["address"].startswith(f"http://127.0.0.1:{port}/?token=")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/api/about", headers={"X-Lancet-Token": told["address"].split("=")[1]})
    about = json.loads(connection.getresponse().read())
    assert (about["default_method"], about["dir"], about["model"]) == ("rome", "talk", str(DEMO))
    assert {"memit", "alphaedit", "ultraedit"} <= {method["name"] for method in about["methods"]}
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[1] == "lancet: error: stopped by SIGTERM; nothing was edited\n"


def test_another_method(start):
    server = start()
    server.do("/api/edit", {"facts": FACTS[:1], "method": "ft-m"})
    assert server.state()["method"] == "ft-m" and server.edits()["list"]["edits"][0]["method"] == "ft-m"
    other = server.end_of(server.order("/api/edit", {"facts": FACTS[1:]}))
    assert other["outcome"] == "failed" and "edits stand" in other["message"], other
    unknown = server.end_of(server.order("/api/edit", {"facts": FACTS[1:], "method": "magic"}))
    assert unknown["outcome"] == "failed" and "magic" in unknown["message"]
    answer = server.ask(PROMPT)
    server.end()
    server = start()
    assert server.state()["method"] == "ft-m" and server.ask(PROMPT) == answer
    server.undo()
    assert server.do("/api/edit", {"facts": FACTS[1:2]}) and server.state()["method"] == "memit"


def test_edits_of_another_model_and_a_folder_in_use_are_refused(start, lancet):
    server = start()
    with pytest.raises(ChildProcessError) as problem:
        start()
    assert problem.value.args[0] == 2 and "expected no other run" in problem.value.args[1]
    server.do("/api/edit", {"facts": FACTS[:1]})
    server.end()
    other = lancet.copy_model("other")
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    with pytest.raises(ChildProcessError) as problem:
        start(model=other)
    assert problem.value.args[0] == 2
    assert "edits-state has the edits of an earlier lancet serve: name another folder with --dir, or remove this one" in problem.value.args[1]
    journal = server.dir / "edits-state" / "edits" / "journal.jsonl"
    journal.write_text(journal.read_text().replace("London", "Berlin"))
    with pytest.raises(ChildProcessError) as problem:
        start()
    assert problem.value.args[0] == 3 and "is damaged: name another folder with --dir" in problem.value.args[1]


def test_what_cannot_be_listened_on_is_refused(start, shared):
    for arguments, part in [(("--port", shared.port), "cannot listen there"), (("--host", "no.such.host.invalid"), "expected an address of this machine")]:
        with pytest.raises(ChildProcessError) as problem:
            start(*arguments)
        assert problem.value.args[0] == 2 and part in problem.value.args[1], problem.value


# ---- Who and what is refused ---------------------------------------------------------------------------------------------------


def raw(server, text, then=b""):
    """The status of the reply to these bytes; what comes after them is sent while it is awaited."""
    with socket.create_connection((server.host, server.port), timeout=60) as connection:
        connection.sendall(text)
        try:
            connection.sendall(then)
        except OSError:
            pass  # refused before it was read
        reply = b""
        while piece := connection.recv(65536):
            reply += piece
    head, _, body = reply.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode(errors="replace")


def head_of(server, path="/api/edit", method="POST", **headers):
    usual = {"Host": f"127.0.0.1:{server.port}", "X-Lancet-Token": server.token, "Content-Type": "application/json"}
    headers = usual | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items() if value is not None), "", ""]
    return "\r\n".join(lines).encode()


@pytest.fixture
def unchanged(shared):
    """What is refused changes nothing: neither edits, nor files, nor work."""
    before, files = shared.state(), sorted(shared.dir.rglob("*"))
    yield shared
    after = shared.state()
    for key in ("edits_version", "n_edits", "method", "finished", "running", "waiting"):
        assert after[key] == before[key], key
    assert sorted(shared.dir.rglob("*")) == files


def test_requests_of_others_are_refused(unchanged):
    body = json.dumps({"facts": FACTS}).encode()
    cases = [
        (401, {"X_Lancet_Token": None}), (401, {"X_Lancet_Token": "0" * 32}), (401, {"X_Lancet_Token": ""}),
        (401, {"X_Lancet_Token": None, "Cookie": f"lancet_page_{unchanged.port}={unchanged.token}"}),
        (403, {"Origin": "http://evil.example"}), (403, {"Origin": "null"}), (403, {"Origin": f"http://127.0.0.1:{unchanged.port + 1}"}),
        (403, {"Sec_Fetch_Site": "cross-site"}), (403, {"Sec_Fetch_Site": "same-site"}),
        (403, {"Host": "evil.example"}), (403, {"Host": f"evil.example:{unchanged.port}"}), (403, {"Host": None}), (403, {"Host": "10.0.0.1"}),
        (415, {"Content_Type": "text/plain"}), (415, {"Content_Type": None}), (415, {"Content_Encoding": "gzip"}),
    ]  # fmt: skip
    for status, headers in cases:
        got, told = raw(unchanged, head_of(unchanged, **headers, Content_Length=len(body)), body)
        assert got == status and json.loads(told)["error"], (headers, got, told)
    for path in ("/", "/serve.js", "/serve.css", "/icon.svg", "/api/state", "/api/edits", "/api/about", "/api/report.json", "/nothing"):
        assert unchanged.send("GET", path, token=False)[0] == 401, path
    assert unchanged.send("GET", f"/api/state?token={unchanged.token}", token=False)[0] == 401
    status, page = unchanged.send("GET", f"/?token={unchanged.token}", token=False)
    assert status == 200 and unchanged.token.encode() not in page


def test_every_reply_has_its_safe_headers(unchanged):
    for path, headers in [("/", {}), ("/api/edits", {"X-Lancet-Token": unchanged.token}), ("/nothing", {"X-Lancet-Token": unchanged.token})]:
        connection = unchanged.connection()
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        policy = reply.getheader("Content-Security-Policy")
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert reply.getheader("X-Content-Type-Options") == "nosniff" and reply.getheader("Referrer-Policy") == "no-referrer"
        assert reply.getheader("Cache-Control") == "no-store"
        assert not [name for name, _ in reply.getheaders() if name.lower().startswith("access-control")]
        connection.close()


def test_bodies_that_are_too_large_are_refused_unread(unchanged):
    for path, kind, most in [("/api/edit", "application/json", 1 << 20), ("/api/file?name=a.json", "application/octet-stream", 16 << 20)]:
        status, told = raw(unchanged, head_of(unchanged, path, Content_Type=kind, Content_Length=most + 1))
        assert status == 413 and "too large" in told, "it did not wait for a body that never comes"
    before = unchanged.peak_bytes()
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    status, told = raw(unchanged, head_of(unchanged, Transfer_Encoding="chunked"), chunk * 1024)
    assert status == 413 and "too large" in told
    assert unchanged.peak_bytes() < before + (24 << 20), "64 MiB were sent"
    status, _ = raw(unchanged, head_of(unchanged, Transfer_Encoding="chunked"), b"ffffffffffffffff\r\nx")
    assert status in (400, 413)
    for headers, expected in [({}, 411), ({"Content_Length": -1}, 411), ({"Content_Length": "x"}, 411), ({"Content_Length": 2, "Transfer_Encoding": "chunked"}, 400),
                              ({"Transfer_Encoding": "gzip, chunked"}, 400)]:  # fmt: skip
        assert raw(unchanged, head_of(unchanged, **headers), b"{}")[0] == expected, headers
    assert raw(unchanged, head_of(unchanged, X_Filler="x" * 40000))[0] == 431
    assert raw(unchanged, head_of(unchanged, **{f"X_Filler_{i}": "x" * 4000 for i in range(10)}))[0] == 431
    assert raw(unchanged, b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n")[0] == 414


@pytest.mark.parametrize("path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/api/../api/edits", "/api/edits%00", "/%00", "/serve.js/..",
                                  "/..%2fserve.js", "/api/report.json/../../x", "/edits-state/requests.jsonl", "/%ff%fe"])  # fmt: skip
def test_no_file_is_served_by_its_path(unchanged, path):
    status, told = raw(unchanged, head_of(unchanged, path, "GET"))
    assert status == 404 and "nothing at this address" in told, told


def test_other_methods_and_broken_requests_are_refused(unchanged):
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "POST", "HEAD"):
        assert raw(unchanged, head_of(unchanged, "/api/state", method, Content_Length=0))[0] == 405, method
    assert raw(unchanged, head_of(unchanged, "/api/edit", "GET"))[0] == 405
    for text in (b"\r\n\r\n", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"):
        with socket.create_connection((unchanged.host, unchanged.port), timeout=60) as connection:
            connection.sendall(text)
            connection.shutdown(socket.SHUT_WR)
            assert b" 200 " not in connection.recv(4096).split(b"\r\n")[0]


@pytest.mark.parametrize(
    ("path", "body", "part"),
    [
        ("/api/edit", b"{", "not valid JSON"), ("/api/edit", b"[]", "expected a JSON object"), ("/api/edit", b'{"facts": []}', "at least one fact"),
        ("/api/edit", b'{"facts": [{}], "facts": []}', "stands twice"), ("/api/edit", b'{"facts": [1]}', "fact 1: expected prompt"),
        ("/api/edit", b'{"facts": [{"prompt": 1}]}', "prompt: expected a text"), ("/api/edit", b'{"facts": [{"prompt": "x"}]}', "target"),
        ("/api/edit", b'{"facts": [{"prompt": "a {}", "subject": "b", "target": "c"}], "path": "/etc"}', "'path': no such key"),
        ("/api/edit", b'{"file": 1, "facts": []}', "expected facts, or a file"), ("/api/edit", b"[" * 100000, "deeper"), ("/api/edit", b"\xff", "JSON"),
        ("/api/ask", b'{"prompt": "x"}', "tokens: expected a whole number"), ("/api/ask", b'{"prompt": "x", "tokens": 0}', "from 1 to"),
        ("/api/ask", b'{"prompt": "x", "tokens": 1e9}', "tokens"), ("/api/ask", b'{"tokens": 5}', "prompt: expected a text"),
        ("/api/ask", b'{"prompt": "x", "tokens": 5, "chat": true}', "chat: "), ("/api/ask", b'{"prompt": "x", "tokens": 5, "seed": 1}', "seed: the likeliest"),
        ("/api/ask", b'{"prompt": "x", "tokens": 5, "weights": "all"}', "expected edited, unedited or both"),
        ("/api/undo", b'{"ids": [1], "edits_version": 1}', "list of texts"), ("/api/undo", b'{"ids": []}', "edits_version"), ("/api/cancel", b'{"item": "x"}', "item"),
        *[("/api/export", json.dumps({"kind": "peft", "name": name}).encode(), "name '")
          for name in ("", ".", "..", "../x", "/etc/x", "a/b", "a\\b", ".hidden", "-rf", "a\x00b", "a b", "é", "x" * 81, "edits-state", "last-report.json", "a.")],
        ("/api/export", b'{"kind": "zip", "name": "a"}', "expected checkpoint, peft or gguf"),
    ],
)  # fmt: skip
def test_bad_orders_are_refused_with_words(unchanged, path, body, part):
    status, told = unchanged.send("POST", path, body, Content_Type="application/json")
    assert status == 400 and part in told["error"], told


def test_slow_clients_do_not_hold_others_up(unchanged):
    slow = []
    for text in (b"POST /api/ed", head_of(unchanged, Content_Length=1000) + b'{"fa') * 8:
        slow.append(socket.create_connection((unchanged.host, unchanged.port), timeout=60))
        slow[-1].sendall(text)
    assert unchanged.get("/api/edits")["edits_version"] == 1
    for _ in range(30):  # and where nobody more is listened to, that is said
        slow.append(socket.create_connection((unchanged.host, unchanged.port), timeout=60))
    reply = slow[-1].recv(4096)
    assert reply.startswith(b"HTTP/1.1 503 ") and b"too many connections" in reply
    for connection in slow:
        connection.close()
    end = time.monotonic() + 60
    while True:  # their threads see it in their own time
        try:
            assert unchanged.send("GET", "/api/edits")[0] in (200, 503)
            if unchanged.send("GET", "/api/edits")[0] == 200:
                break
        except OSError:
            pass
        assert time.monotonic() < end


def answers_within(server, seconds):
    """Whether a user gets the page and the edits, however often it has to be asked for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if server.send("GET", "/")[0] == server.send("GET", "/api/edits")[0] == 200:
                return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


def test_the_page_answers_beside_many_slow_heads_and_bodies(unchanged):
    slow = []
    for text in (b"POST /api/ed", head_of(unchanged, Content_Length=1000) + b'{"fa') * 32:
        slow.append(socket.create_connection((unchanged.host, unchanged.port), timeout=60))
        slow[-1].sendall(text)
    assert answers_within(unchanged, 5)
    for connection in slow:
        connection.close()

    ended = threading.Event()

    def drip():  # comes again as soon as it is sent away, and sends a byte now and then
        while not ended.is_set():
            try:
                with socket.create_connection((unchanged.host, unchanged.port), timeout=60) as connection:
                    connection.sendall(head_of(unchanged, Content_Length=1000))
                    while not ended.wait(0.1):
                        connection.sendall(b" ")
            except OSError:
                ended.wait(0.1)

    threads = [threading.Thread(target=drip) for _ in range(32)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    for _ in range(3):
        assert answers_within(unchanged, 5)
    ended.set()
    for thread in threads:
        thread.join()


def test_pages_that_are_closed_lock_nobody_out(unchanged):
    """Each waits for news for some seconds; more of them than one address may have connections."""
    path = f"/api/state?since={unchanged.state()['state']}"
    for _ in range(40):
        connection = unchanged.connection()
        connection.request("GET", path, headers={"X-Lancet-Token": unchanged.token})
        time.sleep(0.02)
        connection.close()
    assert answers_within(unchanged, 5)


@pytest.mark.parametrize("range", ["bytes=0-9", "bytes=5-", "bytes=-3", "bytes=0-1,4-5", "bytes=9-99999999"])
def test_a_part_of_a_reply_is_not_to_be_had(unchanged, range):
    for path in ("/serve.js", "/api/about"):
        status, whole = raw(unchanged, head_of(unchanged, path, "GET"))
        assert status == 200 and len(whole) > 100
        assert raw(unchanged, head_of(unchanged, path, "GET", Range=range)) == (200, whole)


def large_files():
    """340,000 facts in each form, all of them smaller than the limit."""
    prompt, n = "word " * 3 + "word", 340_000
    record = json.dumps({"prompt": prompt, "target": "c"})
    files = {"many.jsonl": f"{record}\n" * n, "many.json": "[" + ",".join([record] * n) + "]", "many.csv": "prompt,target\n" + f"{prompt},c\n" * n}
    assert all(len(text) <= 16 << 20 for text in files.values())
    return {name: text.encode() for name, text in files.items()}


def test_large_files_are_refused_with_words_and_take_no_memory_for_good(start):
    server, files = start(), large_files()
    told = {}

    def send(number, name):
        told[number] = name, send_file(server, name, files[name])

    before = server.peak_bytes()
    for number, name in enumerate(files):
        send(number, name)
    alone = server.peak_bytes()
    senders = [threading.Thread(target=send, args=(number, name)) for number, name in enumerate(list(files) * 4, len(files))]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert len(told) == 15
    for name, refused in told.values():
        assert refused == (400, {"error": f"{name}: expected at most 10000 facts, got more: send a part of them, or edit them by a job, with lancet edit"})
    print(f"MB: {before / 1e6:.0f} before, {alone / 1e6:.0f} at most with one at a time, {server.peak_bytes() / 1e6:.0f} with twelve, then {server.held_bytes() / 1e6:.0f}")
    assert alone < before + (300 << 20)
    assert server.peak_bytes() < alone + 12 * (20 << 20), "each file waits for its turn as the bytes that it is"
    end = time.monotonic() + 20
    while server.held_bytes() > before + 12 * (20 << 20):  # threads give back what they read after their replies
        assert time.monotonic() < end, "of each no more than the file itself stays, with its thread"
        time.sleep(0.1)
    assert not [path.name for path in server.dir.iterdir() if path.name.startswith(".sent-")]


def test_the_server_ends_at_once_while_it_works_and_pages_listen(start):
    server = start()
    listener = threading.Thread(target=lambda: server.send("GET", f"/api/state?since={server.state()['state'] + 10**6}"))
    item = server.order("/api/edit", {"facts": FACTS})
    listener.start()
    assert wait_for_stage(server, item, "values")
    begun = os.times().elapsed
    assert "stopped by SIGINT" in server.end(signal.SIGINT)
    assert server.process.returncode == -signal.SIGINT and os.times().elapsed - begun < 60
    listener.join()
    assert not (server.dir / "edits-state").exists()
