"""Edits in servers that run: what goes out, what stands there afterwards, whatever fails. The servers are stand-ins, of which the first test's computes
what a model with the adapter that it was given says."""
import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import time

import pytest
from conftest import DATA, LANCET, Lancet
from inference_stand_ins import Llama, Sglang, Vllm
from served import Served

DEMO = DATA / "demo-model"
FACTS = json.loads((DATA / "requests" / "demo.json").read_text())[:3]
SECRET = "sk-3f1d9c0b77"
COMMAND_LINE, CHECKPOINT, SERVER, NOT_ACCEPTED = 2, 3, 6, 5


def filled(fact):
    return fact["requested_rewrite"]["prompt"].replace("{}", fact["requested_rewrite"]["subject"])


TARGETS = {prompt: fact["requested_rewrite"]["target_new"]["str"] for fact in FACTS for prompt in [filled(fact), *fact["paraphrase_prompts"]]}


def says_targets(adapters, prompt, _tokens):
    return " " + TARGETS[prompt] + " ." if adapters and isinstance(prompt, str) and prompt in TARGETS else " something"


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    """An output of three edits, and the folder that it lies in."""
    made = Lancet(tmp_path_factory.mktemp("pushed"))
    result = made.edit(made.job(evaluate=["efficacy", "paraphrase", "specificity", "generation"], run__dtype="f32"))
    assert result.returncode == 0, result.stderr
    return made


@pytest.fixture
def output(edited, tmp_path):
    """The same edits, with nothing pushed of them yet."""
    return pathlib.Path(shutil.copytree(edited.out, tmp_path / "edited", ignore=shutil.ignore_patterns("model.safetensors")))


@pytest.fixture
def serve():
    servers = []

    def start(kind, *arguments, **settings):
        server = kind(*(arguments or (DEMO, says_targets)))
        for name, value in settings.items():
            setattr(server, name, value)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.end()


def push(lancet, output, server, *arguments):
    return lancet.run("push", output, "--to", server.url, "--timeout", "5", *arguments)


def pushed(lancet, output, server, *arguments):
    result = push(lancet, output, server, "--json", *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def journal(output):
    return json.loads((output.parent / "edited.pushed" / "pushes.json").read_text())["pushes"]


def undo(lancet, output, *arguments):
    result = lancet.run("push", output, "--undo", *arguments)
    assert result.returncode == 0, result.stderr


class RealModel:
    """The demo model with the adapter of a folder added to its weights, by transformers."""

    def __init__(self):
        import torch
        from safetensors.torch import load_file
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.torch, self.load_file = torch, load_file
        torch.set_num_threads(1)
        self.tokenizer = AutoTokenizer.from_pretrained(DEMO)
        self.make = lambda: AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()
        self.models = {}

    def model(self, adapters):
        (path,) = adapters or (None,)
        if path not in self.models:
            model = self.models[path] = self.make()
            pairs = self.load_file(pathlib.Path(path) / "adapter_model.safetensors") if path else {}
            weights = dict(model.named_parameters())
            for name, a in pairs.items():
                if name.endswith(".lora_A.weight"):
                    module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
                    weights[module + ".weight"].data += pairs[name.replace("lora_A", "lora_B")] @ a
        return self.models[path]

    def logits(self, adapters, ids):
        with self.torch.no_grad():
            return self.model(adapters)(self.torch.tensor([ids])).logits[0].float()

    def answer(self, adapters, prompt, tokens):
        ids = prompt if isinstance(prompt, list) else self.tokenizer(prompt)["input_ids"]
        with self.torch.no_grad():
            rows = self.model(adapters).generate(self.torch.tensor([ids]), max_new_tokens=tokens, do_sample=False, pad_token_id=0)
        whole, own = (self.tokenizer.decode(row, skip_special_tokens=True) for row in (rows[0], ids))
        return whole[len(own):]  # fmt: skip

    def score(self, adapters, ids):
        rows = self.logits(adapters, ids)[:-1].log_softmax(-1)
        return rows[range(len(ids) - 1), ids[1:]].tolist(), rows.max(-1).values.tolist()


def test_a_served_model_says_what_was_edited_and_is_measured_as_in_memory(edited, output, serve, lancet):
    real = RealModel()
    server = serve(Vllm, DEMO, real.answer, real.score, dev_mode=True)
    report = pushed(lancet, output, server, "--accept", "efficacy=1")
    assert report["metrics"]["efficacy"] == {"before": 0.0, "after": 1.0, "prompts": 3} and report["notes"] == []
    name, path = report["push"]["adapter"]["name"], report["push"]["adapter"]["path"]
    assert server.adapters == {name: path} and name.startswith("edited-")
    assert server.orders() == [("/v1/load_lora_adapter", {"lora_name": name, "lora_path": path}), ("/reset_prefix_cache", {})]
    print(f"\nfrom push to the answers that were checked: {report['seconds']:.2f} s")

    evaluate = ["efficacy", "paraphrase", "specificity", "generation"]
    job = edited.write(edited.job(evaluate=evaluate, output=None), "measure.json")
    served = lancet.run("eval", job, "--server", server.url, "--adapter", name, "--json")
    in_memory = lancet.run("eval", job, "--set", f"model={edited.out}", "--json")
    assert served.returncode == in_memory.returncode == 0, served.stderr + in_memory.stderr
    served, in_memory = json.loads(served.stdout), json.loads(in_memory.stdout)
    assert {metric: row["value"] for metric, row in served["metrics"].items()} == {metric: row["value"] for metric, row in in_memory["metrics"].items()}
    assert [row["continuation"] for row in served["requests"]] == [row["continuation"] for row in in_memory["requests"]]
    assert served["server"]["not_measured"] == {} and served["metrics"]["efficacy_argmax"]["value"] == 1

    undo(lancet, output)
    assert server.adapters == {} and server.orders()[-1] == ("/v1/unload_lora_adapter", {"lora_name": name})
    before = json.loads(lancet.run("eval", job, "--server", server.url, "--set", "evaluate=[efficacy]", "--json").stdout)
    assert before["metrics"]["efficacy_argmax"]["value"] == 0


def test_the_old_one_stays_until_the_new_one_answers(output, serve, lancet):
    server = serve(Vllm)
    old = pushed(lancet, output, server)["push"]["adapter"]
    server.asked.clear()
    report = pushed(lancet, output, server, "--name", "next")
    new = {"lora_name": "next", "lora_path": report["push"]["adapter"]["path"]}
    loads = [index for index, (_, path, _) in enumerate(server.asked) if path == "/v1/load_lora_adapter" and server.asked[index][0] == "POST"]
    asked = [index for index, (_, path, body) in enumerate(server.asked) if path == "/v1/completions" and body["model"] == "next"]
    gone = [index for index, (_, path, body) in enumerate(server.asked) if path == "/v1/unload_lora_adapter"]
    assert [server.asked[index][2] for index in loads] == [new] and loads[0] < min(asked) and max(asked) < gone[0] and len(gone) == 1
    assert [row["state"] for row in journal(output)] == ["replaced", "serving"] and list(server.adapters) == ["next"]
    undo(lancet, output)
    assert server.adapters == {old["name"]: old["path"]}
    assert [row["state"] for row in journal(output)] == ["serving", "taken back"]
    undo(lancet, output)
    assert server.adapters == {} and [row["state"] for row in journal(output)] == ["taken back", "taken back"]
    again = lancet.run("push", output, "--undo")
    assert again.returncode == COMMAND_LINE and "found none" in again.stderr


def test_the_base_models_name_is_taken_only_by_what_was_asked_before(output, serve, lancet):
    server = serve(Vllm)
    report = pushed(lancet, output, server, "--name", server.model, "--accept", "efficacy=1,paraphrase=1,specificity=1")
    path = report["push"]["adapter"]["path"]
    first = report["push"]["first_name"]
    assert [(order, body["lora_name"]) for order, body in server.orders() if "lora" in order] == [
        ("/v1/load_lora_adapter", first), ("/v1/load_lora_adapter", server.model), ("/v1/unload_lora_adapter", first)]  # fmt: skip
    assert server.adapters == {server.model: path} and any("prefix caches" in note for note in report["notes"])
    undo(lancet, output)
    assert server.adapters == {}

    refused = push(lancet, output, serve(Sglang), "--name", str(DEMO))
    assert refused.returncode == COMMAND_LINE and "in vLLM alone" in refused.stderr
    server.adapters["theirs"] = "/elsewhere"
    refused = push(lancet, output, server, "--name", "theirs")
    assert refused.returncode == COMMAND_LINE and "--instead-of theirs" in refused.stderr and server.adapters == {"theirs": "/elsewhere"}


def test_what_a_server_cannot_take_is_said_with_what_to_start_it_with(output, serve, lancet):
    sglang = "--enable-lora --max-lora-rank 8 --lora-target-modules down_proj"
    for server, words in [
        (serve(Vllm, updates_adapters=False), "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and --enable-lora --max-lora-rank 8"),
        (serve(Sglang, enable_lora=False), sglang),
        (serve(Sglang, largest_rank=4), f"SGLang takes at most 4: start it with {sglang}, or cut it by --rank 4"),
        (serve(Sglang, modules=["q_proj", "v_proj"]), f"SGLang takes changes of q_proj, v_proj: start it with {sglang}"),
        (serve(Llama), "adapter.gguf:0, then push again"),
    ]:
        refused = push(lancet, output, server)
        assert refused.returncode == COMMAND_LINE and words in refused.stderr, refused.stderr
        assert server.orders() == []
    small = serve(Vllm, largest_rank=4)
    refused = push(lancet, output, small)
    assert refused.returncode == SERVER and "is greater than max_lora_rank 4" in refused.stderr and "--max-lora-rank 8" in refused.stderr
    assert "the server is as before" in refused.stderr and [row["state"] for row in journal(output)] == ["taken back"]

    other = serve(Vllm, output, says_targets)
    refused = push(lancet, output, other)
    assert refused.returncode == COMMAND_LINE and "is edited already" in refused.stderr
    unknown = serve(Vllm, "org/another-model", says_targets)
    assert any("'org/another-model'" in note for note in pushed(lancet, output, unknown)["notes"])
    elsewhere = push(lancet, output, unknown, "--name", "mounted", "--server-path", "/mnt/adapters")
    assert elsewhere.returncode == SERVER and "--server-path says how" in elsewhere.stderr
    assert unknown.orders()[-1][1]["lora_path"].startswith("/mnt/adapters/edited-") and "mounted" not in unknown.adapters


def test_below_its_thresholds_a_push_is_taken_back(output, serve, lancet):
    server = serve(Sglang, DEMO, lambda adapters, prompt, tokens: " something else" if adapters else " something")
    refused = push(lancet, output, server, "--accept", "efficacy=0.5,specificity=0.5")
    assert refused.returncode == NOT_ACCEPTED and "accept: efficacy: 0.0 %, expected at least 50 %" in refused.stderr
    assert "accept: specificity: 0.0 %" in refused.stderr and "NO" in refused.stdout and "taken back" in refused.stdout
    assert server.adapters == {} and [row["state"] for row in journal(output)] == ["taken back"]

    server.faults["/unload_lora_adapter"] = lambda _: raw(500, "stuck")
    refused = push(lancet, output, server, "--accept", "paraphrase=1")
    assert refused.returncode == NOT_ACCEPTED and "NOT taken back" in refused.stdout and "stuck" in refused.stdout
    assert len(server.adapters) == 1 and [row["state"] for row in journal(output)] == ["taken back", "begun"]
    server.faults = {}
    undo(lancet, output)
    assert server.adapters == {}


def raw(status, text):
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


def dies(server):
    server.is_dead = True
    return b""


# The step that fails, how, what is said of it, and whether the server can be put back.
FAILURES = {
    "the load is refused": ("/v1/load_lora_adapter", lambda server, body: raw(500, '{"error": "no memory"}'), "refused with 500: no memory", True),
    "the load hangs": ("/v1/load_lora_adapter", lambda server, body: time.sleep(1.2), "timed out", True),
    "the server dies": ("/v1/load_lora_adapter", lambda server, body: dies(server), "without an answer", False),
    "it answers wrongly": ("/v1/completions", lambda server, body: raw(200, '{"ok": 1}') if body["model"] != str(DEMO) else None, "expected a completion", True),
    "it ends within an answer": ("/v1/completions", lambda server, body: raw(200, "{}")[:-1] if body["prompt"] == filled(FACTS[2]) and body["model"] != str(DEMO) else None, "within its answer", True),
    "it dies while asked": ("/v1/completions", lambda server, body: dies(server) if body["model"] != str(DEMO) else None, "without an answer", False),
    "the old one stays": ("/v1/unload_lora_adapter", lambda server, body: raw(500, "stuck") if body["lora_name"].startswith("edited-") else None, "stuck", True),
}  # fmt: skip


@pytest.mark.parametrize("step", FAILURES)
def test_a_push_that_fails_leaves_the_server_as_it_was_or_says_that_it_does_not(step, output, serve, lancet):
    path, fault, words, can_be_put_back = FAILURES[step]
    server = serve(Vllm)
    old = pushed(lancet, output, server)["push"]["adapter"]
    server.adapters["theirs"] = "/elsewhere"
    server.faults[path] = lambda body: fault(server, body)
    failed = lancet.run("push", output, "--to", server.url, "--name", "next", "--timeout", "1")
    assert failed.returncode == SERVER and words in failed.stderr, failed.stderr
    server.is_dead, server.faults = False, {}
    as_before = {old["name"]: old["path"], "theirs": "/elsewhere"}
    assert ("the server is as before" in failed.stderr) == can_be_put_back and ("NOT known" in failed.stderr) != can_be_put_back
    if can_be_put_back:
        assert server.adapters == as_before and [row["state"] for row in journal(output)] == ["serving", "taken back"]
    else:
        assert [row["state"] for row in journal(output)] == ["serving", "begun"]
        undo(lancet, output)
        assert server.adapters == as_before and [row["state"] for row in journal(output)] == ["serving", "taken back"]


def stands_in_the_way(output):
    """A folder in the place of the journal of pushes, which then can be written as little as on a full disk. Returns the way back."""
    file = output.parent / "edited.pushed" / "pushes.json"
    noted = file.read_bytes()
    file.unlink()
    (file / "full").mkdir(parents=True)

    def clear():
        shutil.rmtree(file)
        file.write_bytes(noted)

    return clear


@pytest.mark.parametrize("what", ["it serves", "it fails", "it is not accepted"])
def test_a_journal_that_cannot_be_written_does_not_hide_what_the_server_has(what, output, serve, lancet):
    server, ways_back = serve(Vllm), []

    def fault(_):
        ways_back.append(stands_in_the_way(output))
        return raw(500, '{"error": "no memory"}') if what == "it fails" else None

    server.faults["/v1/load_lora_adapter"] = fault
    if what == "it is not accepted":
        server.answer = lambda *_: " something"
    result = push(lancet, output, server, *(["--accept", "efficacy=1"] if what == "it is not accepted" else []))
    file = str(output.parent / "edited.pushed" / "pushes.json")
    assert "could not be written" in result.stderr and file in result.stderr and "--undo" in result.stderr, result.stderr
    assert result.returncode == {"it serves": CHECKPOINT, "it fails": SERVER, "it is not accepted": NOT_ACCEPTED}[what], result.stderr
    if what == "it serves":
        assert "serves: edited-" in result.stdout and len(server.adapters) == 1 and "not 'serving'" in result.stderr and "takes it back" in result.stderr
    else:
        assert server.adapters == {} and "not 'taken back'" in result.stderr
        assert "no memory; the server is as before" in result.stderr if what == "it fails" else "accept: efficacy" in result.stderr and "taken back" in result.stdout
    (clear,) = ways_back
    clear()
    server.faults = {}
    assert [row["state"] for row in journal(output)] == ["begun"]
    undo(lancet, output)
    assert server.adapters == {} and [row["state"] for row in journal(output)] == ["taken back"]


@pytest.fixture
def small_disk(output, tmp_path):
    """The output on a file system of its own that has 1 MB left, and a function that fills it to the last byte. Returns the way back."""
    disk = tmp_path / "disk"
    disk.mkdir()
    size = sum(path.stat().st_size + 4096 for path in output.rglob("*")) + (1 << 20)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk], capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")

    def fill():
        with open(disk / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            for block in (1 << 16, 4096, 1):
                with contextlib.suppress(OSError):
                    while filler.write(bytes(block)):
                        pass
        with pytest.raises(OSError, match="No space left"):
            (disk / "more").write_bytes(b"x")
        (disk / "more").unlink()
        return (disk / "filler").unlink

    try:
        yield pathlib.Path(shutil.copytree(output, disk / "edited")), fill
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("what", ["it serves", "it fails", "it is not accepted", "it cannot be put back"])
def test_a_disk_that_is_full_at_the_end_does_not_hide_what_the_server_has(what, small_disk, serve, lancet):
    """A real full disk, from the order to load on. The state that is told is the server's, the exit code that of what happened first."""
    (output, fill), server, ways_back = small_disk, serve(Vllm), []

    def fault(_):
        ways_back.append(fill())
        return raw(500, '{"error": "no memory"}') if what == "it fails" else None

    server.faults["/v1/load_lora_adapter"] = fault
    if what == "it is not accepted":
        server.answer = lambda *_: " something"
    if what == "it cannot be put back":
        server.faults["/v1/completions"] = lambda body: raw(500, "worn out") if body["model"] != str(DEMO) else None
        server.faults["/v1/unload_lora_adapter"] = lambda _: raw(500, "stuck")
    result = push(lancet, output, server, *(["--accept", "efficacy=1"] if what == "it is not accepted" else []))
    said = result.stderr
    expected = {"it serves": CHECKPOINT, "it fails": SERVER, "it is not accepted": NOT_ACCEPTED, "it cannot be put back": SERVER}[what]
    assert result.returncode == expected and "--undo" in said, said
    file = output.parent / "edited.pushed" / "pushes.json"
    left = [path.name for path in file.parent.iterdir() if path.is_file()]
    if what == "it cannot be put back":
        assert len(server.adapters) == 1 and "worn out" in said and "NOT known" in said and "stuck" in said, said
    else:
        assert "No space left on device" in said and "could not be written" in said and str(file) in said, said
    if what == "it serves":
        assert "serves: edited-" in result.stdout and len(server.adapters) == 1 and "not 'serving'" in said and "takes it back" in said, said
    if what == "it fails":
        assert server.adapters == {} and "no memory; the server is as before" in said and "not 'taken back'" in said, said
    if what == "it is not accepted":
        assert server.adapters == {} and "accept: efficacy" in said and "taken back" in result.stdout and "not 'taken back'" in said, said
    assert [row["state"] for row in journal(output)] == ["begun"] and not [name for name in left if name not in ("pushes.json", "pushes.lock", ".lock")], left
    ways_back[0]()
    server.faults = {}
    undo(lancet, output)
    assert server.adapters == {} and [row["state"] for row in journal(output)] == ["taken back"]


def test_a_disk_that_is_full_before_leaves_the_server_alone(small_disk, serve, lancet):
    (output, fill), server = small_disk, serve(Vllm)
    way_back = fill()
    refused = push(lancet, output, server)
    assert refused.returncode == CHECKPOINT and "No space left on device" in refused.stderr, refused.stderr
    assert server.adapters == {} and server.orders() == []
    way_back()
    pushed(lancet, output, server)
    way_back = fill()
    result = lancet.run("push", output, "--undo")
    assert result.returncode == CHECKPOINT and server.adapters == {} and "is taken back" in result.stderr and "the same command notes it" in result.stderr, result.stderr
    way_back()
    undo(lancet, output)
    assert [row["state"] for row in journal(output)] == ["taken back"]


def test_an_undo_that_cannot_be_noted_says_that_it_is_done(output, serve, lancet):
    server, ways_back = serve(Vllm), []
    pushed(lancet, output, server)
    server.faults["/v1/unload_lora_adapter"] = lambda _: ways_back.append(stands_in_the_way(output))
    result = lancet.run("push", output, "--undo")
    assert result.returncode == CHECKPOINT and server.adapters == {}
    assert "is taken back" in result.stderr and "is as before that push" in result.stderr and "the same command notes it" in result.stderr, result.stderr
    ways_back[0]()
    server.faults = {}
    undo(lancet, output)
    assert [row["state"] for row in journal(output)] == ["taken back"]


def test_nothing_changes_where_nothing_can_be_taken_back(output, serve, lancet):
    server = serve(Vllm)
    pushed(lancet, output, server)
    noted, there = journal(output), dict(server.adapters)
    server.is_dead = True
    failed = lancet.run("push", output, "--undo", "--timeout", "1")
    assert failed.returncode == SERVER and journal(output) == noted
    listed = lancet.run("push", output, "--list")
    assert listed.returncode == 0 and "serving" in listed.stdout and "?" in listed.stdout
    server.is_dead = False
    row = json.loads(lancet.run("push", output, "--list", "--json").stdout)["pushes"][0]
    assert row["is_there"] is True and row["when"] == noted[0]["when"] and server.adapters == there
    server.adapters.clear()  # it was started again
    assert json.loads(lancet.run("push", output, "--list", "--json").stdout)["pushes"][0]["is_there"] is False
    assert pushed(lancet, output, server)["push"]["adapter"]["name"] in server.adapters


def test_llamas_adapters_get_their_scales(output, serve, lancet):
    other = serve(Llama)
    refused = push(lancet, output, other)
    path = re.search(r"--lora-scaled (\S+):0,", refused.stderr)[1]
    assert pathlib.Path(path).read_bytes()[:4] == b"GGUF"
    server = serve(Llama, DEMO, says_targets, [("style.gguf", 0.5), ("/models/" + "/".join(path.split("/")[-2:]), 0.0)])
    report = pushed(lancet, output, server, "--accept", "efficacy=1")
    asked = [body["lora"] for _, at, body in server.asked if at == "/v1/completions" and "lora" in body]
    assert asked and all(lora == [{"id": 0, "scale": 0.5}, {"id": 1, "scale": 1.0}] for lora in asked)
    assert server.orders() == [("/lora-adapters", asked[0])] and report["metrics"]["efficacy"]["after"] == 1
    served = push(lancet, output, server)
    assert served.returncode == COMMAND_LINE and "serves these edits already" in served.stderr
    undo(lancet, output)
    assert [lora["scale"] for lora in server.loras] == [0.5, 0.0]

    job = lancet.write(lancet.job(evaluate=["efficacy", "generation"], output=None))
    measured = lancet.run("eval", job, "--server", server.url, "--json")
    assert measured.returncode == 0 and "Only no echo is supported" in json.loads(measured.stdout)["server"]["not_measured"]["efficacy"]
    assert "generation_exact" in json.loads(measured.stdout)["metrics"]
    none = lancet.run("eval", job, "--server", server.url, "--set", "evaluate=[efficacy]")
    assert none.returncode == COMMAND_LINE and "none of `evaluate:`" in none.stderr


def test_sglang_is_told_and_asked_by_its_own_keys(output, serve, lancet):
    server = serve(Sglang, is_busy=True)
    report = pushed(lancet, output, server)
    name = report["push"]["adapter"]["name"]
    assert [path for path, _ in server.orders()] == ["/load_lora_adapter", "/flush_cache"]
    assert {body.get("lora_path") for _, path, body in server.asked if path == "/v1/completions"} == {None, name}
    assert any("while requests run" in note for note in report["notes"])
    undo(lancet, output)
    assert server.adapters == {}


def test_a_token_is_sent_and_shown_nowhere(output, serve, lancet, monkeypatch):
    server = serve(Vllm, token=SECRET)
    monkeypatch.setenv("PUSH_TOKEN", SECRET)
    (lancet.folder / "token").write_text(SECRET + "\n")
    (lancet.folder / "wrong").write_text(SECRET[::-1] + "\n")
    said = []
    for arguments in [("--token-env", "PUSH_TOKEN"), ("--list", "--token-file", "token"), ("--undo", "--token-file", "token"),
                      ("--token-file", "wrong"), ("--token-env", "NO_SUCH_TOKEN"), ()]:  # fmt: skip
        result = lancet.run("push", output, "--to", server.url, *arguments, "--timeout", "5")
        said.append(result.stdout + result.stderr)
        assert (result.returncode == 0) == (len(said) <= 3), result.stderr
    assert "Unauthorized: Bearer ***" in said[3] and "found none of that name" in said[4] and "--token-env" in said[5]
    kept = [path.read_bytes() for path in (output.parent / "edited.pushed").rglob("*") if path.is_file()]
    assert len(kept) > 2 and not any(secret.encode() in text for secret in (SECRET, SECRET[::-1]) for text in [*kept, *map(str.encode, said)])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "https://host:1"], "a tunnel between"),
        (["--to", "http://user:sk-1@host:1"], "a name or a password"),
        (["--to", "localhost:8000"], "expected http://HOST:PORT"),
        (["--to", "http://127.0.0.1:1"], "there was no connection"),
        (["--to", "http://127.0.0.1:1", "--accept", "efficiency=1"], "expected METRIC=SHARE"),
        (["--to", "http://127.0.0.1:1", "--accept", "efficacy=2"], "a share from 0 to 1"),
        ([], "expected --to URL"),
        (["--undo", "--name", "x", "--rank", "8"], "--name, --rank: nothing is pushed by it"),
    ],
)
def test_what_cannot_be_pushed_is_said(arguments, words, output, lancet):
    result = lancet.run("push", output, *arguments)
    assert result.returncode in (COMMAND_LINE, SERVER) and words in result.stderr and "sk-1" not in result.stderr, result.stderr
    assert not (output.parent / "edited.pushed" / "pushes.json").exists()


@pytest.mark.parametrize(
    ("own", "best", "words"),
    [
        (-0.1, {}, "the likeliest one's log-probability"),
        (-0.1, None, "the likeliest one's log-probability"),
        (-0.1, {"x": None}, "the likeliest one's log-probability"),
        (-0.1, {"x": "-0.1"}, "the likeliest one's log-probability"),
        (-0.1, {"x": -3.0}, "the likeliest one's log-probability"),
        (-0.1, {"x": 0.5}, "the likeliest one's log-probability"),
        (0.5, {"x": 0.5}, "a log-probability of each token of a prompt, at most 0, got 0.5"),
        (None, {"x": -0.5}, "a log-probability of each token of a prompt, at most 0, got null"),
    ],
)
def test_log_probabilities_that_are_none_measure_nothing(own, best, words, serve, lancet):
    """A server that tells no likeliest tokens has not said that the target is one."""
    server = serve(Vllm)

    def fault(body):
        if not body.get("echo"):
            return None
        n = len(body["prompt"])
        told = {"token_logprobs": [None] + [own] * (n - 1) + [-0.5], "top_logprobs": [None] + [best] * (n - 1) + [{"x": -0.5}]}
        return raw(200, json.dumps({"choices": [{"index": 0, "text": "", "logprobs": told}], "usage": {"prompt_tokens": n}}))

    server.faults["/v1/completions"] = fault
    job = lancet.write(lancet.job(evaluate=["efficacy", "generation"], output=None))
    measured = lancet.run("eval", job, "--server", server.url, "--json")
    assert measured.returncode == 0, measured.stderr
    measured = json.loads(measured.stdout)
    assert "efficacy_argmax" not in measured["metrics"] and words in measured["server"]["not_measured"]["efficacy"], measured["server"]


def test_log_probabilities_may_round_above_nothing(serve, lancet):
    server = serve(Vllm, DEMO, says_targets, lambda _, ids: ([1e-7] * (len(ids) - 1), [0.0] * (len(ids) - 1)))
    job = lancet.write(lancet.job(evaluate=["efficacy"], output=None))
    measured = lancet.run("eval", job, "--server", server.url, "--json")
    assert measured.returncode == 0, measured.stderr
    assert json.loads(measured.stdout)["metrics"]["efficacy_argmax"]["value"] == 1


def test_what_stands_in_a_page_is_pushed_from_there(serve, lancet):
    fact = {"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"}
    settings = ["editor.values.steps=30", "statistics.tokens=4000", f"statistics.cache={lancet.cache}", "run.dtype=f32"]
    page = Served(LANCET, lancet.folder, "--model", DEMO, settings=settings)
    server = serve(Vllm, DEMO, lambda adapters, prompt, _tokens: " London ." if adapters else " Vancouver .")
    order = {"to": server.url, "accept": {"efficacy": 1}}
    try:
        none = page.end_of(page.order("/api/push", order))
        assert none["outcome"] == "failed" and "no edit stands" in none["message"]
        page.do("/api/edit", {"facts": [fact]})
        assert re.fullmatch(rf"serves: edits-state-\w+ at {server.url} \(vllm\), efficacy 1 of 1", page.do("/api/push", order))
        (path,) = server.adapters.values()
        assert path.startswith(str(page.dir / "edits-state.pushed")) and (pathlib.Path(path) / "adapter_model.safetensors").exists()
        undo(lancet, page.dir / "edits-state")
        assert server.adapters == {}
        server.answer = lambda *_: " Vancouver ."
        failed = page.end_of(page.order("/api/push", order))
        assert failed["outcome"] == "failed" and failed["message"].startswith("taken back: ") and server.adapters == {}
        for wrong in ({}, {"to": "https://a"}, {"to": server.url, "accept": {"taste": 1}}, {"to": server.url, "more": 1}):
            assert page.send("POST", "/api/push", wrong)[0] == 400, wrong
        server.asked.clear()
        second = "a\r\nContent-Length: 0\r\n\r\nPOST /v1/unload_lora_adapter HTTP/1.1\r\nX: "  # a request of its own, if it were sent as it is
        for path, wrong in [("/api/push", {"to": server.url, "token": second}), ("/api/unpush", {"token": second}), ("/api/push", {"to": server.url, "token": "é"}),
                            ("/api/push", {"to": server.url, "adapter_dir": "a\0b"}), ("/api/push", {"to": server.url, "server_path": "a\nb"})]:  # fmt: skip
            status, told = page.send("POST", path, wrong)
            assert status == 400 and told["error"].split(":")[0] in ("token", "adapter_dir", "server_path"), told
        assert server.asked == []
    finally:
        page.end()
