"""How edits hold in a model, as transformers alone computes it: nothing of lancet's is used. `judge(net, tokenizer, facts, ...)`.

Facts are CounterFact records. All shares are over prompts, in percent:

    efficacy, paraphrase      argmax: each token of the new target is the likeliest in its place; prob: it is likelier than the true one
    efficacy_true, paraphrase_true   argmax of the true target: how many of the prompts the model can answer with what it knows
    specificity               the same two of the true target after prompts about other subjects
    starts                    the greedy continuation begins with the new target, word for word
    chat                      the greedy answer to the prompt as a user's message has the new target in it
    same_next                 prompts about other subjects after which the likeliest next token is that of `baseline`
    perplexity                of `text`, in windows that each begin as the tokenizer begins a text
"""
import math
import re
import string

import torch

ROWS, WINDOW = 16, 256
WRITTEN, ANSWERED = 12, 32  # tokens of a continuation, of an answer


def words(text):
    plain = "".join(" " if c.isspace() else c for c in text.lower() if c not in string.punctuation)
    return [word for word in plain.split() if word not in ("a", "an", "the")]


def begins_with(written, target):
    return words(written)[: len(words(target))] == words(target)


def holds(written, target):
    return f" {' '.join(words(target))} " in f" {' '.join(words(written))} "


def padded(rows, pad):
    ids = torch.full((len(rows), max(map(len, rows))), pad)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = 1
    return dict(input_ids=ids, attention_mask=mask)


def pad_of(tokenizer):
    return tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id


@torch.no_grad()
def score(net, tokenizer, asked):
    """Of each (prompt, target): mean NLL of the target's tokens, whether each of them is the likeliest in its place, and the token that is
    the likeliest after the prompt."""
    found = {}
    rows = sorted(({"asked": pair, "prompt": tokenizer(pair[0]).input_ids, "whole": tokenizer(f"{pair[0]} {pair[1]}").input_ids} for pair in set(asked)),
                  key=lambda row: len(row["whole"]))  # fmt: skip
    for begin in range(0, len(rows), ROWS):
        some = rows[begin : begin + ROWS]
        logits = net(**padded([row["whole"] for row in some], pad_of(tokenizer))).logits
        for i, row in enumerate(some):
            first, end = len(row["prompt"]), len(row["whole"])
            log_p = torch.log_softmax(logits[i, first - 1 : end - 1].float(), -1)
            target = torch.tensor(row["whole"][first:])
            likeliest = log_p.argmax(-1)
            found[row["asked"]] = (-log_p.gather(1, target[:, None]).mean().item(), bool((likeliest == target).all()), likeliest[0].item())
    return [found[pair] for pair in asked]


@torch.no_grad()
def greedy(net, tokenizer, prompts, tokens):
    """Rows are padded on the left, for they are continued."""
    written = []
    for begin in range(0, len(prompts), ROWS):
        some = [list(ids) for ids in prompts[begin : begin + ROWS]]
        longest = max(map(len, some))
        ids = torch.tensor([[pad_of(tokenizer)] * (longest - len(row)) + row for row in some])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in some])
        out = net.generate(input_ids=ids, attention_mask=mask, max_new_tokens=tokens, do_sample=False, pad_token_id=pad_of(tokenizer))
        written += tokenizer.batch_decode(out[:, longest:], skip_special_tokens=True)
    return written


@torch.no_grad()
def perplexity(net, tokenizer, text):
    bos = tokenizer("").input_ids
    ids = tokenizer(text).input_ids[len(bos) :]
    total, count = 0.0, 0
    for begin in range(0, len(ids), WINDOW):
        window = torch.tensor([bos + ids[begin : begin + WINDOW]])
        if window.shape[1] < 2:
            break
        log_p = torch.log_softmax(net(input_ids=window).logits[0, :-1].float(), -1)
        total -= log_p.gather(1, window[0, 1:, None]).sum().item()
        count += window.shape[1] - 1
    return math.exp(total / count)


def percent(outcomes):
    return 100 * sum(outcomes) / len(outcomes) if outcomes else None


def facts_asked(facts, key):
    for fact in facts:
        rewrite = fact["requested_rewrite"]
        for prompt in fact[key] if key else [rewrite["prompt"].format(rewrite["subject"])]:
            yield prompt, rewrite["target_new"]["str"], rewrite["target_true"]["str"]


def judge(net, tokenizer, facts, text, baseline=None):
    """The figures, and under `next` what `baseline` takes."""
    figures = {}
    for name, key, new_wins in (("efficacy", None, True), ("paraphrase", "paraphrase_prompts", True), ("specificity", "neighborhood_prompts", False)):
        asked = list(facts_asked(facts, key))
        new = score(net, tokenizer, [(prompt, target) for prompt, target, _ in asked])
        true = score(net, tokenizer, [(prompt, target) for prompt, _, target in asked])
        figures[f"{name}_argmax"] = percent([one[1] for one in (new if new_wins else true)])
        figures[f"{name}_prob"] = percent([(a[0] < b[0]) if new_wins else (b[0] < a[0]) for a, b in zip(new, true)])
        if new_wins:
            figures[f"{name}_true"] = percent([one[1] for one in true])
        if name == "specificity":
            now = [one[2] for one in true]
    asked = list(facts_asked(facts, None))
    written = greedy(net, tokenizer, [tokenizer(prompt).input_ids for prompt, _, _ in asked], WRITTEN)
    figures["starts"] = percent([begins_with(text, target) for text, (_, target, _) in zip(written, asked)])
    if tokenizer.chat_template:
        as_messages = [tokenizer.apply_chat_template([{"role": "user", "content": prompt}], add_generation_prompt=True, return_dict=True)["input_ids"]
                       for prompt, _, _ in asked]  # fmt: skip
        answers = greedy(net, tokenizer, as_messages, ANSWERED)
        figures["chat"] = percent([holds(text, target) for text, (_, target, _) in zip(answers, asked)])
    if baseline:
        figures["same_next"] = percent([a == b for a, b in zip(now, baseline["next"])])
    figures["perplexity"] = perplexity(net, tokenizer, text)
    return figures | {"next": now, "written": written}


def knows(net, tokenizer, facts):
    """Whether the model's likeliest tokens are the true target, of each fact."""
    return [said for _, said, _ in score(net, tokenizer, [(prompt, true) for prompt, _, true in facts_asked(facts, None)])]


def ordinary_text(characters):
    """A manual that every Python brings: its language reference, as help() shows it."""
    from pydoc_data.topics import topics

    text = "\n\n".join(re.sub(r"[ \t]+", " ", topics[name]).strip() for name in sorted(topics))
    return text[:characters]
