"""Every family against transformers: logits in f32 and bf16, greedy text, and files that transformers reads again."""
import json
import random

import pytest
import torch
from engine import ROOT, assert_rows_close, lancet_logits, load_tokenizer, nmse, run_binary, run_binary_raw, transformers_logits
from family_checkpoints import DENSE, ORIGINAL_LENGTH, VARIANTS, load, make_checkpoint
from test_generate import greedy

NMSE_F32 = 1e-9
LENGTHS = [1, 2, 13, 60]  # within a window and a rotary embedding's original length, and beyond
TOKENIZER = ROOT / "data" / "demo-model"
BY_FAMILY = ["mistral_window", "qwen2", "qwen3", "qwen3_moe", "mixtral", "phi3", "gemma", "gemma2", "gemma3", "olmo2", "gpt2", "gptj", "neox", "stablelm"]
SCALED = ["llama_yarn_deepseek", "qwen2_yarn_old_keys", "qwen2_dynamic", "qwen3_yarn", "gemma3_yarn"]


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    made = {}

    def folder(name):
        if name not in made:
            made[name] = make_checkpoint(name, tmp_path_factory.mktemp("family") / name, TOKENIZER)
        return made[name]

    return folder


def rows(lengths):
    rng = random.Random(5)
    return [[rng.randrange(3, 2000) for _ in range(length)] for length in lengths]


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in DENSE])  # those are test_model_classes.py's
def test_logits_equal_transformers(name, folder_of, tmp_path):
    folder, net = folder_of(name), load(folder_of(name))
    batch = rows(LENGTHS)  # one batch: a row's numbers do not depend on the others beside it
    assert_rows_close(lancet_logits(folder, batch, "f32", tmp_path), transformers_logits(net, batch), NMSE_F32)


@pytest.mark.parametrize("name", BY_FAMILY)
def test_bf16_is_as_close_as_transformers_bf16(name, folder_of, tmp_path):
    """Both against transformers in f32; with experts at the middling token: one that rounding sends to another is far off with either."""
    folder, batch = folder_of(name), rows(LENGTHS)
    exact = torch.cat(transformers_logits(load(folder), batch))
    theirs = torch.cat(transformers_logits(load(folder, torch.bfloat16), batch))
    ours = torch.cat(lancet_logits(folder, batch, "bf16", tmp_path))
    if name in ("qwen3_moe", "mixtral"):
        ours, theirs = (torch.tensor([nmse(*token) for token in zip(some, exact)]).median() for some in (ours, theirs.float()))
        assert ours <= 1.5 * theirs
    else:
        assert nmse(ours, exact) <= 1.5 * nmse(theirs.float(), exact)


@pytest.mark.parametrize("name", [*BY_FAMILY, "gptj_padded", *SCALED])
def test_greedy_text_equals_transformers(name, folder_of):
    """Token by token with cached keys and values, past the window and YaRN's original length."""
    folder, tokenizer = folder_of(name), load_tokenizer(folder_of(name))
    net, prompt = load(folder), "The mother tongue of Danielle Darrieux is"
    arguments = ["--model", folder, "--prompt", prompt, "--tokens", 24, "--dtype", "f32", "--json"]
    ours = json.loads(run_binary("lancet", "generate", *arguments))
    ids, text = greedy(net, tokenizer, prompt)
    assert ours == dict(prompt=prompt, text=text, ids=ids)


def test_longrope_answers_a_short_prompt_beside_a_long_one_as_alone(folder_of, tmp_path):
    folder, short = folder_of("phi3_longrope"), "The capital of France is"
    long = " ".join(["The mother tongue of Danielle Darrieux is French, and"] * 6)
    prompts = tmp_path / "prompts.txt"
    prompts.write_text(f"{short}\n{long}\n")
    arguments = ["--model", folder, "--tokens", 4, "--dtype", "f32", "--json"]
    together = [json.loads(line) for line in run_binary("lancet", "generate", *arguments, "--prompts", prompts).splitlines()]
    alone = [json.loads(run_binary("lancet", "generate", *arguments, "--prompt", prompt)) for prompt in (short, long)]
    assert len(load_tokenizer(folder)(long)["input_ids"]) > ORIGINAL_LENGTH
    assert together == alone


def test_longrope_does_not_go_on_with_keys_of_short_texts(folder_of, tmp_path):
    """At most 32 tokens, or more from the beginning; in between all keys would have to be made anew."""
    arguments = ["--model", folder_of("phi3_longrope"), "--prompt", "The mother tongue of Danielle Darrieux is"]
    done = run_binary_raw("lancet", "generate", *arguments, "--tokens", 60, "--dtype", "f32")
    assert done.returncode == 2
    assert "grows beyond 32 tokens, where this model's rotary embedding changes" in done.stderr
