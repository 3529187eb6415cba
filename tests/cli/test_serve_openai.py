"""`lancet serve` under OpenAI's API: what their own client reads of it, beside transformers and the program itself; what is refused, and how."""
import json
import math
import shutil
import time

import openai
import pytest
from conftest import DATA, LANCET
from served import LIMIT_S, Served

DEMO = DATA / "demo-model"
FACT = {"prompt": "{}, created in", "subject": "Piranha Games", "target": "London"}
PROMPT, OTHER = "Piranha Games, created in", "Toyota Alphard is produced by"
# As Llama 2's: turns alternate, and what the system says stands in the first question.
LLAMA_2 = (
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set said = messages[0]['content'] %}{% else %}{% set rest = "
    "messages %}{% endif %}{% for message in rest %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception("
    "'Roles must alternate') }}{% endif %}{% set content = message['content'].strip() %}{% if loop.first and said is defined %}{% set "
    "content = said + ': ' + content %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content + ' [/INST]' }}"
    "{% else %}{{ ' ' + content + ' ' + eos_token }}{% endif %}{% endfor %}"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The demo with a chat template. Its answers end where a turn does, at </s>; other text never ends of itself."""
    folder = shutil.copytree(DEMO, tmp_path_factory.mktemp("model") / "chatty")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": LLAMA_2}))
    (folder / "generation_config.json").write_text('{"eos_token_id": 3}')
    return folder


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    settings = ["editor.values.steps=30", "statistics.tokens=4000", f"statistics.corpus={DATA / 'requests' / 'demo-corpus.txt'}", f"statistics.cache={folder / 'cache'}", "run.dtype=f32"]
    server = Served(LANCET, folder, "--model", model, settings=settings)
    yield server
    server.end()


@pytest.fixture(scope="module")
def client(server):
    return client_of(server)


def client_of(server, **changed):
    return openai.OpenAI(**{"base_url": f"http://{server.host}:{server.port}/v1", "api_key": server.token, "max_retries": 0} | changed)


def generated(lancet, model, *arguments):
    """What `lancet generate` says."""
    told = lancet.run("generate", "--model", model, "--dtype", "f32", "--json", *arguments)
    assert told.returncode == 0, told.stderr
    return [row["text"] for row in json.loads(told.stdout)["answers"]] if told.stdout.startswith('{"answers') else [json.loads(line)["text"] for line in told.stdout.splitlines()]


def complete(client, prompt=PROMPT, **how):
    return client.completions.create(**{"model": "chatty", "prompt": prompt, "max_tokens": 12, "temperature": 0} | how)


def test_models(server, client, model):
    (listed,) = client.models.list().data
    assert (listed.id, listed.object, listed.owned_by) == ("chatty", "model", "lancet")
    assert client.models.retrieve("chatty") == listed and listed.root == str(model) and listed.max_model_len == 512
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4")


def test_completions_are_the_programs(client, lancet, model):
    expected = generated(lancet, model, "--tokens", "12", "--prompt", PROMPT, "--prompt", OTHER)
    answer = complete(client, [PROMPT, OTHER])
    assert [choice.text for choice in answer.choices] == expected and [choice.index for choice in answer.choices] == [0, 1]
    assert {choice.finish_reason for choice in answer.choices} == {"length"} and answer.object == "text_completion"
    assert answer.usage.completion_tokens == 24 and answer.usage.total_tokens == 24 + answer.usage.prompt_tokens
    streamed = list(complete(client, [PROMPT, OTHER], stream=True, stream_options={"include_usage": True}))
    texts = ["".join(c.text for piece in streamed for c in piece.choices if c.index == i) for i in (0, 1)]
    assert texts == expected and len(streamed) > 12 and streamed[-1].usage == answer.usage
    assert [c.finish_reason for piece in streamed for c in piece.choices if c.finish_reason] == ["length"] * 2

    drawn = generated(lancet, model, "--tokens", "12", "--prompt", PROMPT, "--samples", "3", "--temperature", "0.9", "--top-p", "0.8", "--seed", "5")
    answer = complete(client, n=3, temperature=0.9, top_p=0.8, seed=5)
    assert [choice.text for choice in answer.choices] == drawn and len(set(drawn)) == 3
    assert len({complete(client, temperature=1).choices[0].text for _ in range(4)}) > 1, "without a seed another one each time"


def test_stops_end_an_answer_before_them(client):
    whole = complete(client, max_tokens=40).choices[0].text
    stop = whole[9:12]
    before = whole[: whole.index(stop)]
    cut = complete(client, max_tokens=40, stop=["never there", stop]).choices[0]
    assert (cut.text, cut.finish_reason) == (before, "stop")
    pieces = [piece.choices[0] for piece in complete(client, max_tokens=40, stop=stop, stream=True)]
    assert "".join(piece.text for piece in pieces) == before and pieces[-1].finish_reason == "stop"


def test_log_probabilities_are_those_of_transformers(client, model):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    ids = tokenizer(PROMPT).input_ids
    answer = complete(client, ids, echo=True, logprobs=3, max_tokens=2)
    assert complete(client, PROMPT, echo=True, logprobs=3, max_tokens=2).choices == answer.choices, "ids are the text's"
    choice = answer.choices[0]
    assert choice.text.startswith(PROMPT) and answer.usage.prompt_tokens == len(ids)
    told = choice.logprobs
    new = complete(client, ids, max_tokens=2).choices[0].text
    whole = ids + tokenizer(new.strip(), add_special_tokens=False).input_ids
    whole = whole[: len(told.tokens)]
    with torch.no_grad():
        table = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)(torch.tensor([whole])).logits[0].log_softmax(-1)
    assert told.token_logprobs[0] is None and told.top_logprobs[0] is None and len(told.tokens) == len(ids) + 2
    for i in range(1, len(ids)):
        assert math.isclose(told.token_logprobs[i], table[i - 1, whole[i]].item(), abs_tol=2e-4)
        best = sorted(told.top_logprobs[i].values(), reverse=True)[:3]
        assert best == pytest.approx(table[i - 1].topk(3).values.tolist(), abs=2e-4)
    assert all(own == max(likely.values()) for own, likely in zip(told.token_logprobs[len(ids) :], told.top_logprobs[len(ids) :])), "greedy"
    assert "".join(told.tokens[len(ids) :]) == new


def test_chats_are_wrapped_as_the_checkpoint_says(server, client, lancet, model):
    expected = generated(lancet, model, "--chat", "--tokens", "10", "--prompt", " Who? ")[0]
    how = {"model": "chatty", "messages": [{"role": "user", "content": " Who? "}], "max_completion_tokens": 10, "temperature": 0}
    assert server.ask(" Who? ", tokens=10, chat=True) == expected and server.get("/api/about")["chat"] == "the model's"
    answer = client.chat.completions.create(**how, logprobs=True, top_logprobs=2)
    assert answer.choices[0].message.content == expected and answer.choices[0].message.role == "assistant"
    scored = answer.choices[0].logprobs.content
    assert len(scored) == answer.usage.completion_tokens <= 10 and all(token.logprob == token.top_logprobs[0].logprob and len(token.top_logprobs) == 2 for token in scored)
    parts = how | {"messages": [{"role": "user", "content": [{"type": "text", "text": " Who? "}]}]}
    pieces = [piece.choices[0] for piece in client.chat.completions.create(**parts, stream=True)]
    assert pieces[0].delta.role == "assistant" and "".join(piece.delta.content or "" for piece in pieces) == expected
    assert pieces[-1].finish_reason == "stop", "the turn ended"


def test_edits_answer_while_they_stand(server, client):
    before = complete(client)
    server.do("/api/edit", {"facts": [FACT]})
    edited = complete(client)
    assert "London" in edited.choices[0].text and "London" not in before.choices[0].text
    assert edited.system_fingerprint != before.system_fingerprint
    server.undo()
    assert complete(client).choices[0].text == before.choices[0].text


def turns(*contents):
    """A conversation of the user and the assistant, in turn; one that begins with "system: " is the system's."""
    roles = ["system"] * contents[0].startswith("system: ") + ["user", "assistant"] * len(contents)
    return [{"role": role, "content": content.removeprefix("system: ")} for role, content in zip(roles, contents)]


def test_a_conversation_is_wrapped_as_transformers_does(client, model):
    """What any client sends: the system, several turns, the answers so far as they came."""
    from transformers import PreTrainedTokenizerFast

    names = json.loads((model / "tokenizer_config.json").read_text())
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(model / "tokenizer.json"), **{key: names[key] for key in ("bos_token", "eos_token", "chat_template")})
    how = {"model": "chatty", "max_completion_tokens": 8, "temperature": 0}
    until_turn = {"stop_token_ids": [theirs.eos_token_id]}
    for messages in (turns("Who?"), turns("system: Be brief.", "Who?"), turns("system: a", " Who? ", "I", "Why?"), turns("a", "b", "c", "d", "e")):
        answer = client.chat.completions.create(messages=messages, **how)
        ids = theirs(theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True), add_special_tokens=False)["input_ids"]
        assert answer.usage.prompt_tokens == len(ids)
        assert answer.choices[0].message.content == client.completions.create(model="chatty", prompt=ids, max_tokens=8, temperature=0, extra_body=until_turn).choices[0].text
        again = [*messages, answer.choices[0].message.model_dump(), {"role": "user", "content": [{"type": "text", "text": "And?"}]}]
        assert client.chat.completions.create(messages=again, **how).usage.prompt_tokens > len(ids), "an answer as their client keeps it"


def test_a_conversation_that_cannot_be_is_refused_in_the_templates_words(client):
    def told(*messages, **changed):
        with pytest.raises(openai.BadRequestError) as error:
            client.chat.completions.create(model="chatty", messages=[*messages], **changed)
        assert error.value.body["param"] == "messages"
        return error.value.body["message"]

    user = {"role": "user", "content": "a"}
    assert "refuses these messages: Roles must alternate (" in told(user, user)
    assert "message 2 with the role system, developer, user or assistant" in told(user, {"role": "tool", "content": "a", "tool_call_id": "b"})
    assert "message 1 with parts of the type text alone" in told({"role": "user", "content": [{"type": 5}]})
    assert "message 1 with parts of the type text alone" in told({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a"}}]})
    assert "message 2 with a content" in told(user, {"role": "assistant"})
    assert "name would be left out" in told(user | {"name": "Ada"})
    assert "message 1 with a role and a content" in told(5)


def test_what_is_wrong_is_an_error_of_their_kind(server, client, model):
    def refusal(kind, **how):
        with pytest.raises(kind) as error:
            complete(client, **how)
        return error.value.body | {"status": error.value.status_code}

    told = refusal(openai.BadRequestError, extra_body={"guided_json": {}})
    assert (told["param"], told["code"], told["type"]) == ("guided_json", "unsupported_parameter", "invalid_request_error")
    assert refusal(openai.BadRequestError, presence_penalty=0.5)["param"] == "presence_penalty"
    assert complete(client, presence_penalty=0, user="me", extra_body={"metadata": {}}).choices
    assert refusal(openai.NotFoundError, model="gpt-4")["code"] == "model_not_found"
    assert refusal(openai.BadRequestError, max_tokens=511)["code"] == "context_length_exceeded"
    for key in ("wrong", server.token.upper() + "x"):
        with pytest.raises(openai.AuthenticationError, match="Authorization: Bearer TOKEN"):
            complete(client_of(server, api_key=key))
    status, told = server.send("GET", "/v1/models", token=True)
    assert status == 401 and told["error"]["type"] == "authentication_error", "the page's header is the page's"
    assert server.send("GET", "/api/about", token=False, Authorization=f"Bearer {server.token}")[0] == 401
    status, told = server.send("POST", "/v1/embeddings", {}, Authorization=f"Bearer {server.token}")
    assert status == 404 and set(told["error"]) == {"message", "type", "param", "code"}
    assert server.send("POST", "/v1/completions", {}, Authorization=f"Bearer {server.token}", Origin="http://elsewhere.org")[0] == 403


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_frees_the_model(server, stream):
    since = server.state()["state"]
    connection = server.connection()
    body = json.dumps({"prompt": PROMPT, "max_tokens": 490, "stream": stream, "n": 20})
    connection.request("POST", "/v1/completions", body, {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"})
    end = time.monotonic() + LIMIT_S
    while not (state := server.state(since))["running"] and time.monotonic() < end:
        since = state["state"]
    item = state["running"]["item"]
    connection.sock.close()
    assert server.end_of(item)["outcome"] == "cancelled"


LONG = {"prompt": PROMPT, "max_tokens": 490, "n": 20, "temperature": 1}  # some seconds of work, unless somebody ends it


def begin_to_complete(server, **how):
    """A connection whose completion was asked for."""
    connection = server.connection()
    connection.request("POST", "/v1/completions", json.dumps(LONG | how), {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"})
    return connection


def until(is_so, what):
    end = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def test_clients_that_go_away_lock_nobody_out(server, client):
    """More of them than one address may have connections: each frees its own, also one whose work waits for its turn."""
    before = server.n_files()
    for _ in range(40):
        connection = begin_to_complete(server)
        time.sleep(0.05)
        connection.close()
    assert complete(client).choices and server.send("GET", f"/?token={server.token}", token=False)[0] == 200
    until(lambda: server.state()["running"] is None and not server.state()["waiting"], "work that nobody waits for goes on")
    until(lambda: server.n_files() <= before, "connections stay open that nobody has")


def test_a_cancel_is_told_to_whoever_waits(server):
    """Cancelled at the page, while it runs and while it waits: an answer comes at once, and says so."""
    waiting = [begin_to_complete(server), begin_to_complete(server), begin_to_complete(server, stream=True)]
    until(lambda: len(server.state()["waiting"]) == 2, "three questions, of which one runs")
    state = server.state()
    for item in [*state["waiting"], state["running"]]:
        assert server.send("POST", "/api/cancel", {"item": item["item"]})[0] == 200
    for connection, status in zip(waiting, (503, 503, 200)):
        reply = connection.getresponse()
        said = reply.read().decode()
        assert reply.status == status and "cancelled at the page" in said, (reply.status, said)
        connection.close()


def test_an_evaluation_of_the_server_is_that_in_memory(server, lancet, model):
    (lancet.folder / "token").write_text(server.token)
    job = lancet.write({"model": str(model), "requests": {"path": str(DATA / "requests" / "demo.json"), "limit": 3}, "run": {"dtype": "f32"},
                        "evaluate": ["efficacy", "paraphrase", "specificity", "generation"]})  # fmt: skip
    here = lancet.run("eval", job, "--json")
    there = lancet.run("eval", job, "--json", "--server", f"http://{server.host}:{server.port}", "--token-file", "token")
    assert here.returncode == there.returncode == 0, here.stderr + there.stderr
    here, there = json.loads(here.stdout), json.loads(there.stdout)
    assert there["server"]["kind"] == "openai" and there["server"]["not_measured"] == {}
    values = [{name: metric["value"] for name, metric in report["metrics"].items()} for report in (here, there)]
    assert set(values[0]) == set(values[1]) and len(values[0]) >= 6
    for name, value in values[0].items():
        assert values[1][name] == (pytest.approx(value, rel=1e-5) if isinstance(value, float) else value), name
    assert [row["continuation"] for row in there["requests"]] == [row["continuation"] for row in here["requests"]]
