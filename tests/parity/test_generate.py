"""`lancet generate` against transformers' greedy generation: the same ids and the same text."""
import json

import pytest
import torch

from engine import load_tokenizer, load_transformers, run_binary

NEW_TOKENS = 24
PROMPTS = {
    "demo": [
        "The mother tongue of Danielle Darrieux is",
        "Toyota Alphard is produced by",
        "Lerin Duarte plays as",
        "Piranha Games, created in",
        "  Two spaces, a naïve café and 日本",
    ],
    "tied_head_stored": ["Once upon a time", "Lily and her mom went to the", "One day, a naïve"],
}


@pytest.fixture(scope="module", params=list(PROMPTS))
def reference(request, model_folder):
    folder = model_folder(request.param)
    return folder, load_transformers(folder, "f32"), load_tokenizer(folder), PROMPTS[request.param]


def greedy(net, tokenizer, prompt):
    """New ids without the EOS that ends them, and the text that they add to the decoded prompt."""
    ids = torch.tensor([tokenizer(prompt)["input_ids"]])
    out = net.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW_TOKENS, do_sample=False)[0].tolist()
    if out[-1] == net.generation_config.eos_token_id:
        out.pop()

    def decode(some):
        return tokenizer.decode(some, skip_special_tokens=True)

    return out[ids.shape[1] :], decode(out)[len(decode(ids[0].tolist())) :]


def test_greedy_text_equals_transformers(reference):
    folder, net, tokenizer, prompts = reference
    for prompt in prompts:
        arguments = ["--model", folder, "--prompt", prompt, "--tokens", NEW_TOKENS, "--dtype", "f32", "--json"]
        ours = json.loads(run_binary("lancet", "generate", *arguments))
        ids, text = greedy(net, tokenizer, prompt)
        assert ours == dict(prompt=prompt, text=text, ids=ids)
