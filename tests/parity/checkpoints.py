"""Decides which Llama configurations are tried beyond the trained ones: random weights, one feature a checkpoint.

Weights are scaled so that every part shows in the logits: attention attends, norms and biases are not the defaults.
"""
import json
import math
import shutil

import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

TOKENIZER_FILES = ["tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json"]
LLAMA3_ROPE = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
LLAMA3_ROPE["original_max_position_embeddings"] = 32  # within the tests' rows, so that all three cases of scaling occur
SEED = 20240607

VARIANTS = {
    "untied": {},
    "tied": dict(tie_word_embeddings=True),
    "tied_head_stored": dict(tie_word_embeddings=True),
    "tied_both_stored": dict(tie_word_embeddings=True),
    "padded": dict(vocab_size=4160, tie_word_embeddings=True),  # more rows than the tokenizer has ids
    "llama3_rope": dict(rope_parameters=LLAMA3_ROPE),
    "llama3_rope_old_keys": dict(rope_parameters=LLAMA3_ROPE),
    "three_shards": {},
    "attention_bias": dict(attention_bias=True),
    "mlp_bias": dict(mlp_bias=True),
    "head_dim": dict(head_dim=24),
}


def make_config(overrides):
    settings = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4, vocab_size=4096)
    settings |= dict(num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-5, tie_word_embeddings=False)
    return LlamaConfig(**(settings | dict(bos_token_id=1, eos_token_id=2, rope_parameters=plain_rope()) | overrides))


def plain_rope():
    return dict(rope_type="default", rope_theta=10000.0)


@torch.no_grad()
def randomise(net, generator):
    for name, parameter in net.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if name.endswith("bias"):
            parameter.copy_(0.3 * noise)
        elif parameter.dim() == 1:
            parameter.copy_(1 + 0.2 * noise)
        elif "embed_tokens" in name:
            parameter.copy_(noise)
        else:
            parameter.copy_(1.5 * noise / math.sqrt(parameter.shape[1]))


def to_old_keys(folder):
    """config.json as transformers 4 wrote it."""
    config = json.loads((folder / "config.json").read_text())
    rope = config.pop("rope_parameters")
    config |= dict(rope_theta=rope.pop("rope_theta"), rope_scaling=rope, torch_dtype=config.pop("dtype"))
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def store_head(file, keeps_embedding):
    """Of the two names of a tied table, the other one than transformers writes, or both."""
    tensors = load_file(file)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    if not keeps_embedding:
        del tensors["model.embed_tokens.weight"]
    save_file(tensors, file, metadata={"format": "pt"})


def make_checkpoint(variant, folder, tokenizer_folder):
    """Saves a random model of that variant in float32; returns the folder."""
    net = LlamaForCausalLM(make_config(VARIANTS[variant]))
    randomise(net, torch.Generator().manual_seed(SEED))
    net.save_pretrained(folder, max_shard_size="1150KB" if variant == "three_shards" else "1GB")
    if variant == "three_shards":
        assert len(list(folder.glob("*.safetensors"))) == 3
    if variant.endswith("old_keys"):
        to_old_keys(folder)
    if variant.endswith("stored"):
        store_head(folder / "model.safetensors", keeps_embedding=variant == "tied_both_stored")
    for name in TOKENIZER_FILES:
        shutil.copyfile(tokenizer_folder / name, folder / name)
    return folder
