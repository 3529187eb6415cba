"""config.json of public models, without weights: parameters as published, plans, refusals."""
import json

import pytest
from conftest import ROOT

CHECKPOINT = 3
FOLDER = ROOT / "tests" / "fixtures" / "published"
# As the model cards and the hub's safetensors say; tied embeddings once; of Gemma 3's multi-modal models the text model.
PARAMETERS = {
    "Llama-3.1-8B": 8_030_261_248, "Llama-3.2-1B": 1_235_814_400,
    "Mistral-7B-v0.1": 7_241_732_096, "Mistral-7B-v0.3": 7_248_023_552, "Mistral-Nemo-Base-2407": 12_247_782_400,
    "Qwen2-0.5B": 494_032_768, "Qwen2.5-0.5B": 494_032_768, "Qwen2.5-7B": 7_615_616_512, "Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen3-0.6B": 596_049_920, "Qwen3-8B": 8_190_735_360, "Qwen3-30B-A3B": 30_532_122_624, "Qwen3-235B-A22B": 235_093_634_560,
    "Mixtral-8x7B-v0.1": 46_702_792_704, "Mixtral-8x22B-v0.1": 140_620_634_112,
    "Phi-3-mini-4k-instruct": 3_821_079_552, "Phi-3-mini-128k-instruct": 3_821_079_552, "phi-4": 14_659_507_200,
    "Phi-4-mini-instruct": 3_836_021_760,
    "gemma-2b": 2_506_172_416, "gemma-7b": 8_537_680_896, "gemma-2-2b": 2_614_341_888, "gemma-2-9b": 9_241_705_984,
    "gemma-3-1b-pt": 999_885_952, "gemma-3-4b-pt": 3_880_263_168, "gemma-3-27b-it": 27_009_346_304,
    "OLMo-2-1124-7B": 7_298_617_344, "OLMo-2-1124-13B": 13_716_198_400,
    "gpt2": 124_439_808, "gpt2-xl": 1_557_611_200, "gpt-j-6b": 6_050_882_784,
    "stablelm-3b-4e1t": 2_795_443_200, "stablelm-2-1_6b": 1_644_515_328, "pythia-160m": 162_322_944, "pythia-6.9b": 6_857_302_016, "gpt-neox-20b": 20_554_567_680,
}  # fmt: skip
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
# The kind of layer that the file says, by what `inspect` prints.
FACTS = {
    "Mistral-7B-v0.1": {"window": "4096 tokens in 32 of 32 layers"}, "Mistral-7B-v0.3": {"window": "none"},
    "Qwen2.5-7B": {"window": "none", "biases": ["queries, keys, values"]},
    "gemma-2-9b": {"window": "4096 tokens in 21 of 42 layers", "attention_cap": 50.0, "logits_cap": 30.0, "head_size": 256},
    "gemma-3-1b-pt": {"window": "512 tokens in 22 of 26 layers"},
    "gemma-3-4b-pt": {"window": "1024 tokens in 29 of 34 layers", "head_size": 256, "attention_heads": 8, "key_value_heads": 4, "vocabulary": 262208,
                      "tied_embeddings": True},
    "Mistral-Nemo-Base-2407": {"head_size": 128, "attention_heads": 32},
    "gpt2-xl": {"edited_weight": "transformer.h.0.mlp.c_proj.weight", "tied_embeddings": True, "mlp_size": 6400},
    "gpt-j-6b": {"edited_weight": "transformer.h.0.mlp.fc_out.weight", "tied_embeddings": False},
    "Qwen3-30B-A3B": {"edited_weight": "model.layers.0.mlp.experts.*.down_proj.weight", "window": "none", "experts": 128,
                      "experts_of_a_token": 8, "expert_size": 768, "layers_with_experts": 48},
    "Mixtral-8x7B-v0.1": {"edited_weight": "model.layers.0.block_sparse_moe.experts.*.w2.weight", "mlp": "8 experts of 14336, "
                          "2 of them for each token, SiLU gate, after attention"},
    "pythia-6.9b": {"edited_weight": "gpt_neox.layers.0.mlp.dense_4h_to_h.weight"},
}  # fmt: skip


def config(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def test_every_file_has_its_count_and_every_family_two():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(PARAMETERS)
    families = [config(name)["architectures"][0].replace("ForConditionalGeneration", "ForCausalLM") for name in PARAMETERS]
    assert len(set(families)) == 15 and all(families.count(family) > 1 for family in families if family != "GPTJForCausalLM")


@pytest.mark.parametrize("name", PARAMETERS)
def test_inspect_counts_the_published_parameters(lancet, name):
    result = lancet.run("inspect", FOLDER / f"{name}.json", "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["parameters"] == PARAMETERS[name]
    facts = FACTS.get(name, {})
    assert {key: found[key] for key in facts} == facts


QWEN_YARN = {"factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"}
DEEPSEEK = {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"}


@pytest.mark.parametrize(
    ("name", "scaling", "said"),
    [
        ("Qwen2.5-7B-Instruct", QWEN_YARN, "32768, rotary, base 1e+06, YaRN by 4 of 32768"),
        ("Qwen3-8B", {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, "40960, rotary, base 1e+06, YaRN by 4 of 32768"),
        ("Mistral-7B-v0.3", DEEPSEEK, "32768, rotary, base 1e+06, YaRN by 40 of 4096"),
        ("Llama-3.2-1B", {"type": "dynamic", "factor": 2.0}, "131072, rotary, base 500000, scaled by nothing within them (dynamic)"),
    ],
)
def test_inspect_says_how_positions_are_scaled(lancet, name, scaling, said):
    file = lancet.folder / "config.json"
    file.write_text(json.dumps(config(name) | {"rope_scaling": scaling}))
    result = lancet.run("inspect", file, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["position_embedding"] == said


@pytest.mark.parametrize("name", PARAMETERS)
def test_plan_places_every_parameter(lancet, name):
    devices = "4x80GiB" if PARAMETERS[name] < 100e9 else "16x80GiB"
    result = lancet.run("plan", "--model", FOLDER / f"{name}.json", "--devices", devices, "--json")
    assert result.returncode == 0, result.stderr
    plan = json.loads(result.stdout)
    stored = BYTES[config(name).get("torch_dtype", "float32")]
    weights = sum(stage["weights"] for stage in plan["stages"])
    assert plan["fits"] and stored * PARAMETERS[name] <= weights
    # Rotary tables and, of tied embeddings on another stage than the head, a second copy come on top.
    fields = config(name).get("text_config", config(name))
    copy = fields.get("vocab_size", 262208) * fields.get("hidden_size", fields.get("n_embd", 0))
    assert weights - stored * PARAMETERS[name] <= stored * copy
    assert [stage["first_layer"] for stage in plan["stages"]] == sorted({stage["first_layer"] for stage in plan["stages"]})


DENSE = {
    "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 5632,
    "max_position_embeddings": 4096, "num_attention_heads": 32, "num_hidden_layers": 24, "num_key_value_heads": 32,
    "rope_theta": 10000, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 100352,
}  # fmt: skip
RMS = {"rms_norm_eps": 1e-5, "attention_bias": False, "mlp_bias": False}
GPT_OSS_YARN = {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": False}
LATENT_YARN = {"beta_fast": 32, "beta_slow": 1, "factor": 40, "original_max_position_embeddings": 4096, "type": "yarn"}
LATENT = DENSE | {
    "attention_bias": False, "kv_lora_rank": 512, "max_position_embeddings": 163840, "moe_layer_freq": 1, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "rms_norm_eps": 1e-6, "v_head_dim": 128,
}  # fmt: skip
BY_ROWS = {  # what config.json says of sizes, and how many parameters the hub counts; tied embeddings once
    "granite-3.0-2b": (DENSE | RMS | {"architectures": ["GraniteForCausalLM"], "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 40,
                       "num_key_value_heads": 8, "vocab_size": 49155, "tie_word_embeddings": True, "attention_multiplier": 0.015625,
                       "embedding_multiplier": 12.0, "logits_scaling": 8.0, "residual_multiplier": 0.22}, 2_533_531_648),
    "SmolLM3-3B": (DENSE | RMS | {"architectures": ["SmolLM3ForCausalLM"], "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
                   "num_key_value_heads": 4, "vocab_size": 128256, "tie_word_embeddings": True, "no_rope_layer_interval": 4, "pretraining_tp": 2,
                   "sliding_window": None, "use_sliding_window": False, "max_window_layers": 28}, 3_075_098_624),
    "phi-2": (DENSE | {"architectures": ["PhiForCausalLM"], "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32, "vocab_size": 51200,
              "hidden_act": "gelu_new", "partial_rotary_factor": 0.4, "qk_layernorm": False, "resid_pdrop": 0.1}, 2_779_683_840),
    "starcoder2-3b": (DENSE | {"architectures": ["Starcoder2ForCausalLM"], "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30,
                      "num_attention_heads": 24, "num_key_value_heads": 2, "vocab_size": 49152, "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5,
                      "sliding_window": 4096, "use_bias": True, "tie_word_embeddings": True}, 3_030_371_328),
    "c4ai-command-r-v01": (DENSE | {"architectures": ["CohereForCausalLM"], "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
                           "num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 256000, "layer_norm_eps": 1e-5, "logit_scale": 0.0625,
                           "model_max_length": 131072, "tie_word_embeddings": True}, 34_980_831_232),
    "OLMo-1B-hf": (DENSE | {"architectures": ["OlmoForCausalLM"], "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 16,
                   "num_key_value_heads": 16, "vocab_size": 50304, "clip_qkv": None, "tie_word_embeddings": True}, 1_176_764_416),
    "falcon-7b": ({"alibi": False, "architectures": ["FalconForCausalLM"], "attention_dropout": 0.0, "bias": False, "hidden_dropout": 0.0,
                   "hidden_size": 4544, "layer_norm_epsilon": 1e-5, "model_type": "falcon", "multi_query": True, "num_attention_heads": 71,
                   "num_hidden_layers": 32, "parallel_attn": True, "vocab_size": 65024}, 6_921_720_704),
    "bloom-560m": ({"architectures": ["BloomForCausalLM"], "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16, "vocab_size": 250880,
                    "layer_norm_epsilon": 1e-5, "offset_alibi": 100, "masked_softmax_fusion": True}, 559_214_592),
    "mpt-7b": ({"architectures": ["MPTForCausalLM"], "d_model": 4096, "n_layers": 32, "n_heads": 32, "max_seq_len": 2048, "vocab_size": 50432,
                "expansion_ratio": 4, "no_bias": True, "norm_type": "low_precision_layernorm", "attn_config": {"alibi": True, "clip_qkv": None}}, 6_649_286_656),
    "opt-1.3b": ({"architectures": ["OPTForCausalLM"], "hidden_size": 2048, "ffn_dim": 8192, "num_hidden_layers": 24, "num_attention_heads": 32,
                  "max_position_embeddings": 2048, "vocab_size": 50272, "word_embed_proj_dim": 2048, "do_layer_norm_before": True}, 1_315_758_080),
    "gpt-neo-1.3B": ({"architectures": ["GPTNeoForCausalLM"], "hidden_size": 2048, "num_layers": 24, "num_heads": 16, "max_position_embeddings": 2048,
                      "vocab_size": 50257, "window_size": 256, "attention_types": [[["global", "local"], 12]]}, 1_315_575_808),
    "gpt-oss-20b": (DENSE | {"architectures": ["GptOssForCausalLM"], "attention_bias": True, "experts_per_token": 4, "head_dim": 64, "hidden_size": 2880,
                    "initial_context_length": 4096, "intermediate_size": 2880, "layer_types": ["sliding_attention", "full_attention"] * 12,
                    "max_position_embeddings": 131072, "num_attention_heads": 64, "num_experts_per_tok": 4, "num_key_value_heads": 8,
                    "num_local_experts": 32, "rms_norm_eps": 1e-5, "rope_scaling": GPT_OSS_YARN, "rope_theta": 150000, "router_aux_loss_coef": 0.9,
                    "sliding_window": 128, "swiglu_limit": 7.0, "vocab_size": 201088}, 20_914_757_184),
    "DeepSeek-V2-Lite": (LATENT | {"architectures": ["DeepseekV2ForCausalLM"], "first_k_dense_replace": 1, "intermediate_size": 10944,
                         "moe_intermediate_size": 1408, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": False,
                         "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": None,
                         "routed_scaling_factor": 1.0, "scoring_func": "softmax", "topk_group": 1, "topk_method": "greedy", "vocab_size": 102400,
                         "rope_scaling": LATENT_YARN | {"mscale": 0.707, "mscale_all_dim": 0.707}}, 15_706_484_224),
    "DeepSeek-V3": (LATENT | {"architectures": ["DeepseekV3ForCausalLM"], "ep_size": 1, "first_k_dense_replace": 3, "hidden_size": 7168,
                    "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
                    "norm_topk_prob": True, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
                    "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_group": 4,
                    "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]},
                    "topk_method": "noaux_tc", "vocab_size": 129280, "rope_scaling": LATENT_YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}}, 671_026_419_200),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_ROWS)
def test_inspect_counts_the_parameters_of_dense_rows(lancet, name):
    values, parameters = BY_ROWS[name]
    path = lancet.folder / "config.json"
    path.write_text(json.dumps(values))
    result = lancet.run("inspect", path, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["parameters"] == parameters


ZAMBA2 = BY_ROWS["granite-3.0-2b"][0] | {"architectures": ["Zamba2ForCausalLM"], "model_type": "zamba2",
                                         "hybrid_layer_ids": [6]}  # fmt: skip
MAMBA = {
    "architectures": ["MambaForCausalLM"], "conv_kernel": 4, "d_inner": 1536, "d_model": 768, "expand": 2, "hidden_act": "silu",
    "hidden_size": 768, "layer_norm_epsilon": 1e-5, "model_type": "mamba", "n_layer": 24, "num_hidden_layers": 24,
    "residual_in_fp32": True, "rms_norm": True, "ssm_cfg": {"layer": "Mamba1"}, "ssm_layer": 1, "ssm_rank": 1, "state_size": 16, "time_step_rank": 48,
    "use_conv_bias": True, "vocab_size": 50280,
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        (ZAMBA2, ["unknown family 'Zamba2ForCausalLM'", "the nearest is Granite", "has no hybrid_layer_ids", "This version knows Llama"]),
        (MAMBA, ["unknown family 'MambaForCausalLM'", "none is near", "d_inner", "and 1 more"]),
        (ZAMBA2 | {"architectures": None}, ["unknown family 'zamba2'", "hybrid_layer_ids"]),
    ],
)
def test_an_unknown_family_is_refused_by_what_differs(lancet, values, parts):
    path = lancet.folder / "config.json"
    path.write_text(json.dumps(values))
    for command in [["inspect", path], ["plan", "--model", path, "--devices", "80GiB"]]:
        result = lancet.run(*command)
        assert result.returncode == CHECKPOINT and not result.stdout
        assert all(part in result.stderr for part in parts), result.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rope_scaling": {"type": "linear", "factor": 4.0, "mscale_all_dim": 1.0}}, "rope_scaling.mscale_all_dim: expected no such key, but for yarn"),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}, "rope_scaling": None}, "partial_rotary_factor: expected 1 or no such key"),
        ({"attention_bias": True}, "attention_bias: expected false: latent attention has no biases here"),
        ({"num_key_value_heads": 64}, "num_key_value_heads: expected num_attention_heads, 128, or no such key, got 64"),
        ({"v_head_dim": 300}, "v_head_dim: expected at most a key's numbers, 192, got 300"),
        ({"topk_group": 9}, "topk_group: expected at most n_group, 8, got 9"),
        ({"n_group": 32, "topk_group": 1, "num_experts_per_tok": 9}, "topk_group: expected groups of at least the 9 experts that are chosen, got 1"),
        ({"scoring_func": "softmax"}, 'scoring_func: expected sigmoid, got "softmax"'),
    ],
)
def test_latent_attention_that_would_compute_otherwise_is_refused(lancet, changes, words):
    path = lancet.folder / "config.json"
    path.write_text(json.dumps(BY_ROWS["DeepSeek-V3"][0] | changes))
    result = lancet.run("inspect", path)
    assert result.returncode == CHECKPOINT and words in result.stderr, result.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"moe_latent_size": 16}, "moe_latent_size: expected null or no such key: experts of hidden states, got 16"),
        ({"mlp_bias": True}, "mlp_bias: expected false where layers have experts, whose MLP has none here, got true"),
        ({"use_bias": True}, "use_bias: expected false or no such key, got true"),
        ({"attention_bias": True}, "attention_bias: expected false or no such key, got true"),
    ],
)
def test_nemotron_h_that_would_compute_otherwise_is_refused(lancet, changes, words):
    path = lancet.folder / "config.json"
    path.write_text(json.dumps(json.loads((ROOT / "tests/fixtures/families/nemotron_h.json").read_text())["config"] | changes))
    result = lancet.run("inspect", path)
    assert result.returncode == CHECKPOINT and words in result.stderr, result.stderr


def test_gpt_oss_in_mxfp4_takes_its_packed_bytes(lancet):
    values, parameters = BY_ROWS["gpt-oss-20b"]
    skipped = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    path = lancet.folder / "config.json"
    path.write_text(json.dumps(values | {"quantization_config": {"modules_to_not_convert": skipped, "quant_method": "mxfp4"}}))
    result = lancet.run("inspect", path, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["parameters"] == parameters and found["quantised"] == "mxfp4"
    result = lancet.run("plan", "--model", path, "--devices", "48GiB", "--json")
    assert result.returncode == 0, result.stderr
    weights = sum(stage["weights"] for stage in json.loads(result.stdout)["stages"])
    of_experts = 24 * 32 * 3 * 2880 * 2880  # numbers: 4 bits each, and an exponent for 32; for each matrix a table of 1 KiB
    packed = of_experts * 17 // 32 + 24 * 32 * 3 * 1024
    edited = 5 * (2 * of_experts - packed) // (24 * 3)  # five layers' down projections, in bf16 while a job runs
    assert weights == 2 * (parameters - of_experts) + packed + edited

