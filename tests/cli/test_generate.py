"""`lancet generate`: prompts from the command line, a file, a pipe and a terminal; sampling; two models; chat templates."""
import json
import os
import subprocess
import time

import pytest
from conftest import CHATML, DATA, LANCET

CONFIG, CHECKPOINT = 2, 3
DEMO = DATA / "demo-model"
PROMPTS = ["Piranha Games, created in", "The mother tongue of Danielle Darrieux is", "Lerin Duarte, the"]
LLAMA_2 = (
    "{% for message in messages %}{% set content = message['content'] %}{{ bos_token + '[INST] ' + message['content'].strip() + ' [/INST]' }}"
    "{% endfor %}"
)


def generate(lancet, *arguments, text=None, model=DEMO):
    tokens = [] if "--tokens" in arguments else ["--tokens", "8"]
    words = ["generate", "--model", model, "--dtype", "f32", *tokens, *arguments]
    if text is None:
        return lancet.run(*words)
    return subprocess.run([str(LANCET), *map(str, words)], input=text, capture_output=True, text=True, cwd=lancet.folder, timeout=300)


def rows(result):
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def each(prompts):
    return [word for prompt in prompts for word in ("--prompt", prompt)]


def edited_model(lancet):
    """The demo model with its first layer's MLP output halved."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file, save_file

    model = lancet.copy_model("edited")
    tensors = load_file(model / "model.safetensors")
    tensors["model.layers.0.mlp.down_proj.weight"] *= 0.5
    assert tensors["model.layers.0.mlp.down_proj.weight"].dtype == torch.bfloat16
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    return model


def test_prompts_of_every_source_have_the_same_answers(lancet):
    (lancet.folder / "prompts.txt").write_bytes("\r\n".join(PROMPTS).encode())
    alone = [rows(generate(lancet, "--json", "--prompt", prompt))[0] for prompt in PROMPTS]
    assert [row["prompt"] for row in alone] == PROMPTS and all(set(row) == {"prompt", "text", "ids"} for row in alone)
    assert rows(generate(lancet, "--json", *each(PROMPTS))) == alone
    assert rows(generate(lancet, "--json", "--prompts", "prompts.txt")) == alone
    assert rows(generate(lancet, "--json", "--prompt", PROMPTS[0], "--prompts", "prompts.txt")) == [alone[0], *alone]
    assert rows(generate(lancet, "--json", text="\n".join(PROMPTS) + "\n")) == alone
    shown = generate(lancet, *each(PROMPTS)).stdout
    assert shown == "".join(row["prompt"] + row["text"] + "\n" for row in alone)
    assert generate(lancet, text="\n".join(PROMPTS)).stdout == shown


def test_sampling_depends_on_the_seed_and_the_row_alone(lancet):
    options = ["--json", "--temperature", "1.2", "--top-p", "0.95", "--samples", "3", "--seed"]
    once = rows(generate(lancet, *options, "5", *each(PROMPTS)))
    assert [(row["prompt"], row["sample"]) for row in once] == [(prompt, i) for prompt in PROMPTS for i in range(3)]
    assert len({row["text"] for row in once[:3]}) > 1
    assert rows(generate(lancet, *options, "5", text="\n".join(PROMPTS))) == once
    assert rows(generate(lancet, *options, "5", "--prompt", PROMPTS[0])) == once[:3]
    assert rows(generate(lancet, *options, "6", *each(PROMPTS))) != once
    greedy = rows(generate(lancet, "--json", *each(PROMPTS)))
    assert rows(generate(lancet, "--json", "--top-k", "1", *each(PROMPTS))) == greedy
    assert rows(generate(lancet, "--json", "--top-p", "1e-6", *each(PROMPTS))) == greedy


def test_two_models_side_by_side(lancet):
    edited = edited_model(lancet)
    both = rows(generate(lancet, "--json", "--beside", edited, *each(PROMPTS)))
    first, second = rows(generate(lancet, "--json", *each(PROMPTS))), rows(generate(lancet, "--json", *each(PROMPTS), model=edited))
    for row, base, other in zip(both, first, second, strict=True):
        assert (row["text"], row["ids"]) == (base["text"], base["ids"])
        assert row["beside"] == {"text": other["text"], "ids": other["ids"]}
        assert row["differs"] == (base["text"] != other["text"])
    n_different = sum(row["differs"] for row in both)
    assert n_different > 0
    shown = generate(lancet, "--beside", edited, *each(PROMPTS)).stdout
    assert shown.splitlines()[-1] == f"{n_different} of 3 rows differ"
    assert shown.count("  * ") == 2 * n_different
    same = generate(lancet, "--beside", DEMO, *each(PROMPTS)).stdout
    assert "  * " not in same and same.splitlines()[-1] == "0 of 3 rows differ"


def test_chat_templates(lancet):
    model = lancet.copy_model()
    config = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": LLAMA_2}))
    own = rows(generate(lancet, "--json", "--chat", "--prompt", " Who? ", model=model))[0]
    hand = rows(generate(lancet, "--json", "--chat-template", "[INST] {} [/INST]", "--prompt", "Who?"))[0]
    spelt = rows(generate(lancet, "--json", "--prompt", "[INST] Who? [/INST]"))[0]
    assert own["ids"] == hand["ids"] == spelt["ids"] and own["prompt"] == " Who? "
    assert generate(lancet, "--chat-template", "[INST] {} [/INST]", "--prompt", "Who?").stdout == f"Who?\n{hand['text']}\n"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--prompt", "a", "--temperature", "0"], ["--temperature: expected a number", "got 0"]),
        (["--prompt", "a", "--top-p", "1.5"], ["--top-p: expected a number", "to 1, got 1.5"]),
        (["--prompt", "a", "--top-k", "-2"], ["--top-k: expected an integer of at least 0, got -2"]),
        (["--prompt", "a", "--seed", "3"], ["--seed", "--temperature"]),
        (["--prompt", "a", "--samples", "3"], ["--samples", "--temperature"]),
        (["--prompts", "absent.txt"], ["--prompts: absent.txt", "cannot be read"]),
        (["--prompts", "empty.txt"], ["--prompts: empty.txt", "prompt per line"]),
        (["--prompt", "a", "--tokens", "600"], ["512", "--tokens"]),
        (["--prompt", "a " * 600], ["positions", "shorter prompt"]),
        (["--prompt", "a", "--chat-template", "USER:"], ["exactly one {}"]),
        (["--prompt", "a", "--chat", "--chat-template", "{}"], ["--chat"]),
    ],
)
def test_bad_input_is_told_what_to_do(lancet, arguments, parts):
    (lancet.folder / "empty.txt").write_text("")
    result = generate(lancet, *arguments)
    assert result.returncode == CONFIG, result.stderr
    for part in parts:
        assert part in result.stderr


def test_a_chat_template_that_cannot_be_used_is_told_of(lancet):
    result = generate(lancet, "--chat", "--prompt", "a")
    assert result.returncode == CHECKPOINT and "--chat-template" in result.stderr
    model = lancet.copy_model()
    for jinja, parts in [("{{ bos_token }}", ["got it 0 times", "--chat-template"]), (CHATML, ["<|im_start|>", "into pieces"])]:
        (model / "chat_template.jinja").write_text(jinja)
        result = generate(lancet, "--chat", "--prompt", "a", model=model)
        assert result.returncode == CHECKPOINT, result.stderr
        assert all(part in result.stderr for part in parts), result.stderr


def test_a_pipe_is_answered_line_by_line(lancet):
    command = [LANCET, "generate", "--model", DEMO, "--dtype", "f32", "--tokens", "4", "--quiet"]
    with subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for prompt in PROMPTS:  # the next one is written when the answer is there
            process.stdin.write(prompt + "\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith(prompt)
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def read_until(terminal, text, seconds=120):
    shown, end = "", time.monotonic() + seconds
    while text not in shown:
        assert time.monotonic() < end, shown
        shown += os.read(terminal, 4096).decode()
    return shown


def test_a_terminal_is_asked_until_ctrl_d(lancet):
    pty = pytest.importorskip("pty")
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal: {error}")
    answer = rows(generate(lancet, "--json", "--prompt", PROMPTS[0]))[0]["text"]
    command = [LANCET, "generate", "--model", DEMO, "--dtype", "f32", "--tokens", "8", "--quiet"]
    process = subprocess.Popen([*map(str, command)], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    read_until(ours, "> ")
    os.write(ours, ("word " * 300 + "\n").encode())  # more than the model has positions for: an error, and again
    assert "512 positions" in read_until(ours, "\r\n> ")
    os.write(ours, (PROMPTS[0] + "\n").encode())
    assert answer in read_until(ours, "\r\n> ").replace("\r\n", "\n")
    os.write(ours, b"\x04")
    assert process.wait(timeout=60) == 0
    os.close(ours)
