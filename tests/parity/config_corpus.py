"""Decides which keys of config.json are tried: what transformers of several times writes, what public files have, what changes the computation.

    config_corpus.py [LANCET]   prints a table by kind of key: silent, warned, refused
"""
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from transformers import GenerationConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASS_OF

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = {file.stem: json.loads(file.read_text()) for file in sorted((ROOT / "tests/fixtures/published").glob("*.json"))}
KEYS = json.loads((ROOT / "models/families/transformers_keys.json").read_text())
SILENT, WARNED, REFUSED = "silent", "warned", "refused"

# What PreTrainedConfig.to_dict() of transformers 4 has for every model, at its defaults.
BASE_OF_4 = dict(
    return_dict=True, output_hidden_states=False, output_attentions=False, torchscript=False, torch_dtype="float16", use_bfloat16=False, tf_legacy_loss=False,
    pruned_heads={}, chunk_size_feed_forward=0, is_encoder_decoder=False, is_decoder=False, cross_attention_hidden_size=None,
    add_cross_attention=False, tie_encoder_decoder=False, max_length=20, min_length=0, do_sample=False, early_stopping=False, num_beams=1,
    num_beam_groups=1, diversity_penalty=0.0, temperature=1.0, top_k=50, top_p=1.0, typical_p=1.0, repetition_penalty=1.0, length_penalty=1.0,
    no_repeat_ngram_size=0, encoder_no_repeat_ngram_size=0, bad_words_ids=None, num_return_sequences=1, output_scores=False,
    return_dict_in_generate=False, forced_bos_token_id=None, forced_eos_token_id=None, remove_invalid_values=False,
    exponential_decay_length_penalty=None, suppress_tokens=None, begin_suppress_tokens=None, finetuning_task=None,
    id2label={"0": "LABEL_0", "1": "LABEL_1"}, label2id={"LABEL_0": 0, "LABEL_1": 1}, tokenizer_class=None, prefix=None, pad_token_id=None,
    sep_token_id=None, decoder_start_token_id=None, task_specific_params=None, problem_type=None, _name_or_path="org/name",
    transformers_version="4.41.0",
)  # fmt: skip
TASKS_OF_GPT2 = {"text-generation": {"do_sample": True, "max_length": 50}}

# {kind: [(a published file or a model type, keys that are added, what becomes of them)]}
KINDS = {
    "names and versions": [
        ("Llama-3.2-1B", dict(_name_or_path="meta-llama/Llama-3.2-1B", _commit_hash="1a2b", transformers_version="4.45.0.dev0"), SILENT),
        ("Llama-3.2-1B", dict(_model_name_or_path="Smollm2 135M"), WARNED),
        ("Qwen2.5-0.5B", dict(unsloth_version="2024.11", unsloth_fixed=True), SILENT),
        ("Mistral-7B-v0.1", dict(_attn_implementation_autoset=True, _attn_implementation="sdpa", attn_implementation="eager"), SILENT),
        ("Llama-3.1-8B", {"transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}, "dtype": "q4"}}, WARNED),
    ],
    "tokens": [
        ("Llama-3.2-1B", dict(unk_token_id=0), SILENT), ("gemma-2b", dict(unk_token_id=3), WARNED), ("Qwen3-8B", dict(pad_token_id=151643), SILENT),
        ("Llama-3.1-8B", dict(pad_key_length=128), WARNED), ("gpt2", dict(sep_token_id=None, decoder_start_token_id=None), SILENT),
    ],
    "classification": [
        ("Llama-3.2-1B", dict(num_labels=3, id2label={"0": "A"}, label2id={"A": 0}, problem_type=None), SILENT),
        ("gpt2", dict(summary_type="cls_index", summary_use_proj=True), SILENT),
    ],
    "generation": [
        ("gpt2", dict(task_specific_params=TASKS_OF_GPT2), SILENT), ("Llama-3.2-1B", dict(temperature=0.6, top_p=0.9, max_length=4096, do_sample=True), SILENT),
        ("gemma-2-2b", dict(cache_implementation="hybrid"), SILENT), ("Qwen3-8B", dict(num_assistant_tokens=5, use_cache=False), SILENT),
    ],
    "training": [
        ("Llama-3.2-1B", dict(hidden_dropout=0.1, resid_pdrop=0.1, attn_pdrop=0.0, layerdrop=0.0, initializer_range=0.02), SILENT),
        ("Llama-3.1-8B", dict(sequence_parallel_enabled=False, gradient_checkpointing=True, pretraining_tp=2), SILENT),
        ("Mixtral-8x7B-v0.1", dict(router_aux_loss_coef=0.02, output_router_logits=True), SILENT),
        ("gpt2", dict(n_special=0, predict_special_tokens=True), WARNED), ("Llama-3.2-1B", dict(max_sequence_length=2048), WARNED),
    ],
    "settings of SmolLM": [("Llama-3.2-1B", dict(is_llama_config=True, rope_interleaved=False), WARNED)],
    "empty, null or zero": [
        ("Qwen3-8B", dict(mlp_only_layers=[], shared_expert_intermediate_size=0, num_experts=0), SILENT),
        ("Llama-3.2-1B", dict(sliding_window=None, use_sliding_window=False, attn_logit_softcapping=None, pruned_heads={}), SILENT),
        ("Llama-3.2-1B", dict(layer_types=["full_attention"] * 16), SILENT), ("qwen3_5_text", dict(mlp_only_layers=[]), SILENT),
        ("Mistral-7B-v0.3", dict(rope_scaling={}, quantization_config={}), SILENT),
    ],
    "classes and types": [
        ("Llama-3.2-1B", dict(architectures=["LLaMAForCausalLM"]), SILENT), ("Llama-3.2-1B", dict(architectures=["LlamaForCausalLM", "LlamaModel"]), SILENT),
        ("Llama-3.2-1B", dict(architectures=None), SILENT), ("Llama-3.2-1B", dict(torch_dtype="torch.bfloat16"), SILENT),
        ("Qwen2.5-7B", dict(torch_dtype="auto"), SILENT), ("phi-4", dict(dtype="half"), SILENT),
    ],
    "names said twice": [
        ("gpt2", dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12), SILENT), ("falcon", dict(n_embed=4544, n_head=71, n_layer=32), SILENT),
        ("Mixtral-8x7B-v0.1", dict(num_experts=8), SILENT),
    ],
    # What changes the computation, in a class that reads it or in one that does not: never accepted
    "windows and chunks": [
        ("Llama-3.1-8B", dict(sliding_window=4096), REFUSED), ("Llama-3.1-8B", dict(attention_chunk_size=8192), REFUSED),
        ("OLMo-2-1124-7B", dict(sliding_window=4096, layer_types=["sliding_attention"] * 32), REFUSED), ("Qwen3-8B", dict(window_size=256), REFUSED),
    ],
    "soft caps": [("Llama-3.1-8B", dict(final_logit_softcapping=30.0), REFUSED), ("gemma-2b", dict(attn_logit_softcapping=50.0), REFUSED)],
    "factors": [
        ("Llama-3.1-8B", dict(embedding_multiplier=12.0), REFUSED), ("Llama-3.1-8B", dict(residual_multiplier=0.22, logits_scaling=8), REFUSED),
        ("Mistral-7B-v0.3", dict(logit_scale=0.0625), REFUSED), ("Qwen3-8B", dict(query_pre_attn_scalar=144), REFUSED),
    ],
    "experts": [
        ("Llama-3.1-8B", dict(num_local_experts=8), REFUSED), ("Qwen3-8B", dict(num_experts=128), REFUSED), ("Qwen3-8B", dict(mlp_only_layers=[3]), REFUSED),
        ("gemma-2b", dict(n_routed_experts=64), REFUSED),
    ],
    "layers of their own": [
        ("Llama-3.1-8B", dict(per_layer_config={"3": {"num_attention_heads": 8}}), REFUSED), ("Llama-3.1-8B", dict(no_rope_layers=[1, 0]), REFUSED),
        ("gpt2", dict(pruned_heads={"0": [1]}), REFUSED), ("gpt2", dict(scale_attn_by_inverse_layer_idx=True), REFUSED),
    ],
    "attention both ways": [
        ("Llama-3.1-8B", dict(is_causal=False), REFUSED), ("gemma2", dict(use_bidirectional_attention=True), REFUSED),
        ("gpt2", dict(add_cross_attention=True), REFUSED),
    ],
    "packed weights": [
        ("Qwen3-8B", dict(quantization={"group_size": 64, "bits": 4}, quantization_config={"group_size": 64, "bits": 4}), REFUSED),
        ("Llama-3.2-1B", dict(quantization_config={"quant_method": "exl2", "bits": 4.0}), REFUSED),
    ],
    "code beside the file": [("Llama-3.2-1B", dict(sparkles=3, auto_map={"AutoConfig": "configuration_x.XConfig"}), REFUSED)],
}  # fmt: skip


def of_class(model_type):
    """A config.json as the class itself writes it, at its defaults."""
    given = dict(head_dim=128) if model_type == "glm4_moe" else {}  # by its defaults 4096 numbers are divided among 96 heads
    return json.loads(json.dumps(CONFIG_MAPPING[model_type](**given).to_dict(), default=str))


def base_of(name):
    return dict(PUBLISHED[name]) if name in PUBLISHED else of_class(name)


def written_by_transformers():
    """{name: config.json} of every model type that lancet knows, in each spelling that transformers has had; all of it is read without a word."""
    found = {}
    for kind in KEYS["types"]:
        config = of_class(kind) | dict(architectures=[CLASS_OF[kind]] if kind in CLASS_OF else None)
        generation = {key: value for key, value in GenerationConfig().to_dict().items() if key not in config}
        spelled_before = {key: value for key, value in config.items() if key != "dtype"}
        found |= {f"{kind}, 5": config | dict(dtype="bfloat16"), f"{kind}, with generation": config | generation, f"{kind}, 4": BASE_OF_4 | spelled_before}
    return found


def cases():
    """[(kind, base, config, what becomes of it)]"""
    found = [(kind, name, base_of(name) | more, expected) for kind, rows in KINDS.items() for name, more, expected in rows]
    found += [("published files", name, config, SILENT) for name, config in PUBLISHED.items()]
    return found + [("written by transformers", name, config, SILENT) for name, config in written_by_transformers().items()]


def verdict(lancet, config, folder):
    """(what becomes of it, what is said)"""
    (folder / "config.json").write_text(json.dumps(config))
    done = lancet("inspect", folder / "config.json")
    if done.returncode != 0:
        return REFUSED, done.stderr
    return (WARNED if "transformers ignores" in done.stderr else SILENT), done.stderr


def table(lancet, folder):
    rows = collections.defaultdict(collections.Counter)
    for kind, _, config, expected in cases():
        rows[kind]["of"] += 1
        found, _ = verdict(lancet, config, folder)
        rows[kind][found] += 1
        rows[kind]["as expected"] += found == expected
    columns = ["of", SILENT, WARNED, REFUSED, "as expected"]
    lines = ["| kind | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    return "\n".join(lines + [f"| {kind} | " + " | ".join(str(row[column]) for column in columns) + " |" for kind, row in rows.items()])


if __name__ == "__main__":
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/lancet")
    with tempfile.TemporaryDirectory() as scratch:
        print(table(lambda *words: subprocess.run([program, *map(str, words)], capture_output=True, text=True), Path(scratch)))
