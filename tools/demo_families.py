"""Decides the architecture of a demo model: each family at the size of the options, with what only that family has turned on."""
from demo_tokenizers import Gpt2Tokenizer, GemmaTokenizer, LlamaTokenizer, QwenTokenizer
from transformers import Gemma2Config, GPT2Config, GPTJConfig, LlamaConfig, Qwen2MoeConfig, Qwen3_5TextConfig, Qwen3Config

MAX_LENGTH = 512
GPT_J_PADDING = 32  # rows of the embedding beyond the tokenizer, as in GPT-J's 50,400
GEMMA_WINDOW = 16  # shorter than the rows that it is trained on


def like_llama(options, tokenizer):
    """What the configurations of Llama's descendants have in common."""
    return dict(
        vocab_size=tokenizer.size,
        hidden_size=options.hidden,
        intermediate_size=options.ffn,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.kv,
        max_position_embeddings=MAX_LENGTH,
        tie_word_embeddings=True,
    ) | special_ids(tokenizer)


def special_ids(tokenizer):
    return dict(bos_token_id=tokenizer.start[0] if tokenizer.start else tokenizer.end, eos_token_id=tokenizer.end)


def like_gpt2(options, tokenizer):
    """What GPT-2's and GPT-J's have in common."""
    sizes = dict(n_embd=options.hidden, n_inner=options.ffn, n_layer=options.layers, n_head=options.heads)
    sizes |= dict(vocab_size=tokenizer.size, n_positions=MAX_LENGTH)
    return sizes | dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0) | special_ids(tokenizer)


def llama(options, tokenizer):
    return LlamaConfig(rms_norm_eps=1e-5, rope_theta=10000.0, **like_llama(options, tokenizer))


def qwen3(options, tokenizer):
    """Heads as wide as Llama's demo has them, whatever the hidden size."""
    return Qwen3Config(head_dim=32, rms_norm_eps=1e-6, **like_llama(options, tokenizer))


def qwen3_5(options, tokenizer):
    """Gated delta rules in all layers but every third, as small as the heads of its attention."""
    linear = dict(linear_key_head_dim=32, linear_value_head_dim=32, linear_num_key_heads=options.kv, linear_num_value_heads=options.heads)
    kinds = ["full_attention" if layer % 3 == 2 else "linear_attention" for layer in range(options.layers)]
    sizes = dict(head_dim=32, layer_types=kinds, rms_norm_eps=1e-6)
    return Qwen3_5TextConfig(**sizes, **linear, **like_llama(options, tokenizer))


def qwen2_moe(options, tokenizer):
    """A shared MLP of half the inner size, and four experts of a quarter, two of them for each token."""
    experts = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=options.ffn // 4, norm_topk_prob=True)
    experts |= dict(shared_expert_intermediate_size=options.ffn // 2, router_aux_loss_coef=0.01, output_router_logits=True)
    return Qwen2MoeConfig(rms_norm_eps=1e-6, **experts, **like_llama(options, tokenizer))


def gemma2(options, tokenizer):
    head_dim = options.hidden // options.heads
    caps = dict(attn_logit_softcapping=50.0, final_logit_softcapping=30.0, sliding_window=GEMMA_WINDOW)
    sizes = dict(head_dim=head_dim, query_pre_attn_scalar=head_dim, pad_token_id=0)
    return Gemma2Config(attn_implementation="eager", **sizes, **caps, **like_llama(options, tokenizer))


def gpt2(options, tokenizer):
    return GPT2Config(**like_gpt2(options, tokenizer))


def gpt_j(options, tokenizer):
    """Half of each head rotates."""
    settings = like_gpt2(options, tokenizer) | dict(vocab_size=tokenizer.size + GPT_J_PADDING)
    return GPTJConfig(rotary_dim=options.hidden // options.heads // 2, tie_word_embeddings=False, **settings)


# by name: configuration, tokenizer
FAMILIES = {
    "llama": (llama, LlamaTokenizer),
    "gpt2": (gpt2, Gpt2Tokenizer),
    "gpt-j": (gpt_j, Gpt2Tokenizer),
    "gemma2": (gemma2, GemmaTokenizer),
    "qwen3": (qwen3, QwenTokenizer),
    "qwen3.5": (qwen3_5, QwenTokenizer),
    "qwen2-moe": (qwen2_moe, QwenTokenizer),
}
