#include "gguf_names.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr GgufFamily kGgufFamilies[] = {
    {"LlamaForCausalLM", "llama", true},
    {"MistralForCausalLM", "llama", true},
    {"MixtralForCausalLM", "llama", true},
    {"Qwen2ForCausalLM", "qwen2"},
    {"Qwen3ForCausalLM", "qwen3"},
    {"Qwen3MoeForCausalLM", "qwen3moe"},
    {"Phi3ForCausalLM", "phi3"},
    {"GemmaForCausalLM", "gemma"},
    {"Gemma2ForCausalLM", "gemma2"},
    {"Gemma3ForCausalLM", "gemma3"},
    {"Olmo2ForCausalLM", "olmo2"},
    {"GPT2LMHeadModel", "gpt2"},
    {"GPTNeoXForCausalLM", "gptneox"},
    {"StableLmForCausalLM", "stablelm"},
    {"SmolLM3ForCausalLM", "smollm3", true},
    {"GraniteForCausalLM", "granite", true},
    {"CohereForCausalLM", "command-r"},
    {"Cohere2ForCausalLM", "cohere2"},
    {"GlmForCausalLM", "chatglm"},
    {"Glm4ForCausalLM", "glm4"},
    {"NemotronForCausalLM", "nemotron"},
    {"ArceeForCausalLM", "arcee", true},
    {"Exaone4ForCausalLM", "exaone4"},
    {"Starcoder2ForCausalLM", "starcoder2"},
    {"PhiForCausalLM", "phi2"},
    {"SeedOssForCausalLM", "seed_oss"},
    {"HunYuanDenseV1ForCausalLM", "hunyuan-dense"},
    {"OlmoForCausalLM", "olmo", true},
    {"Olmo3ForCausalLM", "olmo2"},
    {"Ernie4_5ForCausalLM", "ernie4_5"},
    {"GPTBigCodeForCausalLM", "starcoder"},
    {"FalconForCausalLM", "falcon"},
    {"BloomForCausalLM", "bloom"},
    {"MptForCausalLM", "mpt"},
    {"ApertusForCausalLM", "apertus"},
    {"Jais2ForCausalLM", "jais2"},
    {"OlmoeForCausalLM", "olmoe"},
    {"Qwen2MoeForCausalLM", "qwen2moe"},
    {"Ernie4_5_MoeForCausalLM", "ernie4_5-moe"},
    {"Lfm2ForCausalLM", "lfm2"},
    {"JambaForCausalLM", "jamba"},
    {"Glm4MoeForCausalLM", "glm4moe"},
    {"Lfm2MoeForCausalLM", "lfm2moe"},
    {"PhiMoEForCausalLM", "phimoe"},
    {"Qwen3NextForCausalLM", "qwen3next"},
    {"Qwen3_5ForCausalLM", "qwen35"},
    {.architecture = "NemotronHForCausalLM",
     .name = "nemotron_h",
     .interleaves_heads = true,
     .name_with_experts = "nemotron_h_moe"},
    {.architecture = "GraniteMoeHybridForCausalLM",
     .name = "granitehybrid",
     .interleaves_heads = true,
     .name_without_mixers = "granite",
     .splits_gates_and_ups = true},
    {"BambaForCausalLM", "granitehybrid", true},
    {.architecture = "FalconH1ForCausalLM", .name = "falcon-h1", .folds_factors = true},
    {"MiniCPM3ForCausalLM", "minicpm3"},
    {"DeepseekV2ForCausalLM", "deepseek2"},
    {"DeepseekV3ForCausalLM", "deepseek2"},
    {"Glm4MoeLiteForCausalLM", "deepseek2"},
    {"YoutuForCausalLM", "deepseek2"}};

/// Returns llama.cpp's name for a layer's matrix; empty if none is known. If several weights share a matrix, `kind` is
/// that of the first one.
std::string_view stem_of(const ModelConfig& config, WeightKind kind, bool is_fused) {
  switch (kind) {
    case WeightKind::kQuery:
      if (config.latent.query_rank > 0) return "attn_q_b";
      return is_fused && !config.gated_attention ? "attn_qkv" : "attn_q";
    case WeightKind::kAttnGate:
      return "attn_q";  // gates are stored with the queries, head by head
    case WeightKind::kQueryDown:
      return "attn_q_a";
    case WeightKind::kKeyValueDown:
      return "attn_kv_a_mqa";
    case WeightKind::kKey:
      return "attn_k";
    case WeightKind::kValue:
      return "attn_v";
    case WeightKind::kAttnOut:
      return "attn_output";
    case WeightKind::kGate:
      return is_fused ? "ffn_up" : "ffn_gate";  // a fused gate and up projection has the name of up
    case WeightKind::kUp:
      return "ffn_up";
    case WeightKind::kDown:
      return "ffn_down";
    case WeightKind::kSharedGate:
      return "ffn_gate_shexp";
    case WeightKind::kSharedUp:
      return "ffn_up_shexp";
    case WeightKind::kSharedDown:
      return "ffn_down_shexp";
    default:
      return "";
  }
}

}  // namespace

const GgufFamily& gguf_family(const ModelConfig& config) {
  for (const std::string_view architecture : config.family->architectures)
    for (const GgufFamily& family : kGgufFamilies)
      if (family.architecture == architecture) return family;
  std::vector<std::string> known;
  for (const GgufFamily& family : kGgufFamilies) known.emplace_back(family.architecture);
  throw ConfigError(cat("adapter for llama.cpp: expected a model of one of ", join(known), ", got ",
                        config.family->name, ", which has no name there; write an adapter of PEFT"));
}

std::string_view gguf_architecture(const ModelConfig& config) {
  const GgufFamily& family = gguf_family(config);
  if (config.experts.count > 0 && !family.name_with_experts.empty()) return family.name_with_experts;
  const bool has_mixers = std::ranges::count(config.recurrence.layers, true) > 0;
  return has_mixers || family.name_without_mixers.empty() ? family.name : family.name_without_mixers;
}

double gguf_factor(const ModelConfig& config, WeightKind kind) {
  if (!gguf_family(config).folds_factors) return 1;
  switch (kind) {
    case WeightKind::kQuery:
    case WeightKind::kValue:
      return config.attention_in_scale;
    case WeightKind::kKey:  // the factor of the attention scores is put into the keys
      return config.attention_in_scale * config.attention_scale * std::sqrt(static_cast<double>(config.head_dim));
    case WeightKind::kAttnOut:
      return config.recurrence.attention_factor;
    case WeightKind::kGate:
      return config.gate_scale;
    case WeightKind::kDown:
      return config.mlp_out_scale;
    case WeightKind::kHead:
      return config.logits_scale;
    default:
      return 1;
  }
}

std::string gguf_name(const ModelConfig& config, const LinearModule& module, const ModulePart* part) {
  const WeightSpec& spec = part != nullptr ? part->spec : module.parts.front().spec;
  if (spec.id.kind == WeightKind::kHead) return "output.weight";
  const std::string_view stem = stem_of(config, spec.id.kind, part == nullptr && module.parts.size() > 1);
  if (stem.empty()) throw std::logic_error(module.name + ": no matrix of an adapter");
  return cat("blk.", spec.id.layer, ".", stem, spec.stored.tensors.size() > 1 ? "_exps" : "", ".weight");
}

std::string why_no_gguf(const ModelConfig& config, const WeightSpec& spec) {
  if (spec.shape.size() != 2) return "it is no matrix";
  if (spec.id.kind == WeightKind::kEmbedding || spec.id.kind == WeightKind::kPositions)
    return "it is a table of embeddings";
  if (spec.id.kind == WeightKind::kRouter) return "it is a router";
  if (spec.id.kind != WeightKind::kHead && stem_of(config, spec.id.kind, false).empty())
    return "no name of it in llama.cpp's files is known";
  if (has_all_experts(spec.stored.layout)) return "it is in a tensor of all experts, which is no linear module";
  return "";
}

}  // namespace lancet
