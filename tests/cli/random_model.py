"""A small Llama of random weights, for tests that bring a tokenizer of their own. It can be taught a next token."""
import json

import numpy
from safetensors.numpy import save_file

HIDDEN, FFN, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 32, 64, 3, 4, 2, 8


def random_weights(vocab):
    rng = numpy.random.default_rng(7)

    def noise(rows, columns):
        return (rng.standard_normal((rows, columns)) / numpy.sqrt(columns)).astype(numpy.float32)

    weights = {"model.embed_tokens.weight": noise(vocab, HIDDEN), "lm_head.weight": 4 * noise(vocab, HIDDEN),
               "model.norm.weight": numpy.ones(HIDDEN, numpy.float32)}  # fmt: skip
    shapes = {"self_attn.q_proj": (HEADS * HEAD_DIM, HIDDEN), "self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
              "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN), "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
              "mlp.gate_proj": (FFN, HIDDEN), "mlp.up_proj": (FFN, HIDDEN), "mlp.down_proj": (HIDDEN, FFN)}  # fmt: skip
    for layer in range(LAYERS):
        for name, shape in shapes.items():
            weights[f"model.layers.{layer}.{name}.weight"] = noise(*shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"model.layers.{layer}.{name}.weight"] = numpy.ones(HIDDEN, numpy.float32)
    return weights


def write_random_model(folder, vocab, bos, eos):
    """config.json and model.safetensors, in f32."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": FFN,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM,
        "vocab_size": vocab, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu",
        "tie_word_embeddings": False, "torch_dtype": "float32", "bos_token_id": bos, "eos_token_id": eos,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    save_file(random_weights(vocab), folder / "model.safetensors", metadata={"format": "pt"})
