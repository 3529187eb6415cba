#include "architectures.h"

#include <algorithm>

#include "architecture_rows.h"
#include "complete_config.h"
#include "gpt_rows.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_layout.h"

namespace lancet {
namespace {

constexpr GgufArchitecture kMixtral{.name = "llama",
                                    .model_class = "MixtralForCausalLM",
                                    .model_type = "mixtral",
                                    .tensors = {kOutside, kAttention, kMixtralExperts, kMlp},
                                    .keys = {kSizes, kHeadSize, kMixtralKeys},
                                    .complete = complete_silu,
                                    .has_turned_heads = true};

constexpr GgufArchitecture kDeepseekV3{.name = "deepseek2",
                                       .model_class = "DeepseekV3ForCausalLM",
                                       .model_type = "deepseek_v3",
                                       .other_type = "glm4_moe_lite",
                                       .tensors = {kOutside, kDeepseekNames, kAttention, kMlp},
                                       .whole_names = kRouterCorrections,
                                       .keys = {kSizes, kDeepseekKeys},
                                       .complete = complete_deepseek3};

/// Forms of an architecture whose classes have model types of their own.
constexpr const GgufArchitecture* kOtherClasses[] = {&kMixtral, &kDeepseekV3};

constexpr GgufArchitecture kFalconOfTwoNorms{.name = "falcon",
                                             .model_class = "FalconForCausalLM",
                                             .model_type = "falcon",
                                             .tensors = {kFalconNorms, kFalconNames},
                                             .keys = {kFalconSizes},
                                             .norm_key = "layer_norm_epsilon",
                                             .complete = complete_falcon};

constexpr GgufArchitecture kGgufArchitectures[] = {
    {.name = "llama",
     .model_class = "LlamaForCausalLM",
     .model_type = "llama",
     .other_type = "mistral",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kHeadSize},
     .complete = complete_llama,
     .has_turned_heads = true},
    {.name = "granite",
     .model_class = "GraniteForCausalLM",
     .model_type = "granite",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kGraniteKeys},
     .complete = complete_llama,
     .has_turned_heads = true},
    {.name = "smollm3",
     .model_class = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes},
     .complete = complete_llama,
     .has_turned_heads = true},
    {.name = "qwen2",
     .model_class = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes},
     .complete = complete_silu},
    {.name = "qwen3",
     .model_class = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kHeadSize},
     .complete = complete_qwen3},
    {.name = "qwen2moe",
     .model_class = "Qwen2MoeForCausalLM",
     .model_type = "qwen2_moe",
     .tensors = {kOutside, kAttention, kQwenExperts, kMlp},
     .keys = {kSizes, kMoeKeys},
     .complete = complete_qwen2_moe},
    {.name = "qwen3moe",
     .model_class = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .tensors = {kOutside, kAttention, kQwenExperts, kMlp},
     .keys = {kSizes, kMoeKeys},
     .complete = complete_qwen3_moe},
    {.name = "gemma",
     .model_class = "GemmaForCausalLM",
     .model_type = "gemma",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kHeadSize},
     .complete = complete_gemma,
     .has_norms_plus_one = true},
    {.name = "gemma2",
     .model_class = "Gemma2ForCausalLM",
     .model_type = "gemma2",
     .tensors = {kOutside, kGemmaNorms, kAttention, kMlp},
     .keys = {kSizes, kHeadSize, kGemmaKeys},
     .complete = complete_gemma2,
     .has_norms_plus_one = true},
    {.name = "gemma3",
     .model_class = "Gemma3ForCausalLM",
     .model_type = "gemma3_text",
     .tensors = {kOutside, kGemmaNorms, kAttention, kMlp},
     .keys = {kSizes, kHeadSize, kGemmaKeys},
     .complete = complete_gemma3,
     .has_norms_plus_one = true},
    {.name = "olmo2",
     .model_class = "Olmo2ForCausalLM",
     .model_type = "olmo2",
     .tensors = {kOutside, kPostNorms, kAttention, kMlp},
     .keys = {kSizes},
     .complete = complete_silu},
    {.name = "phi3",
     .model_class = "Phi3ForCausalLM",
     .model_type = "phi3",
     .tensors = {kOutside, kFused, kAttention, kMlp},
     .keys = {kSizes, kWindow},
     .complete = complete_phi3},
    {.name = "glm4",
     .model_class = "Glm4ForCausalLM",
     .model_type = "glm4",
     .tensors = {kOutside, kGlmNorms, kAttention, kMlp},
     .keys = {kSizes, kHeadSize},
     .complete = complete_glm4},
    {.name = "exaone4",
     .model_class = "Exaone4ForCausalLM",
     .model_type = "exaone4",
     .tensors = {kOutside, kPostNorms, kAttention, kMlp},
     .keys = {kSizes, kWindow},
     .complete = complete_exaone4},
    {.name = "command-r",
     .model_class = "CohereForCausalLM",
     .model_type = "cohere",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kCohereKeys},
     .norm_key = "layer_norm_eps",
     .complete = complete_cohere},
    {.name = "cohere2",
     .model_class = "Cohere2ForCausalLM",
     .model_type = "cohere2",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kHeadSize, kCohere2Keys},
     .norm_key = "layer_norm_eps",
     .complete = complete_cohere2},
    {.name = "starcoder2",
     .model_class = "Starcoder2ForCausalLM",
     .model_type = "starcoder2",
     .tensors = {kOutside, kTwoStepMlp, kAttention, kMlp},
     .keys = {kSizes, kWindow},
     .norm_key = "norm_epsilon",
     .complete = complete_starcoder2},
    {.name = "stablelm",
     .model_class = "StableLmForCausalLM",
     .model_type = "stablelm",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kStableLmKeys},
     .norm_key = "layer_norm_eps",
     .complete = complete_stablelm},
    {.name = "nemotron",
     .model_class = "NemotronForCausalLM",
     .model_type = "nemotron",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kHeadSize},
     .norm_key = "norm_eps",
     .complete = complete_nemotron,
     .has_norms_plus_one = true},
    {.name = "phi2",
     .model_class = "PhiForCausalLM",
     .model_type = "phi",
     .tensors = {kPhi2Names, kOutside, kAttention},
     .keys = {kSizes},
     .norm_key = "layer_norm_eps",
     .complete = complete_phi2},
    {.name = "gpt2",
     .model_class = "GPT2LMHeadModel",
     .model_type = "gpt2",
     .tensors = {kGpt2Names},
     .keys = {kGptSizes},
     .norm_key = "layer_norm_epsilon",
     .complete = complete_gpt2},
    {.name = "gptneox",
     .model_class = "GPTNeoXForCausalLM",
     .model_type = "gpt_neox",
     .tensors = {kNeoxNames},
     .keys = {kNeoxSizes},
     .norm_key = "layer_norm_eps",
     .complete = complete_gpt_neox},
    {.name = "gptj",
     .model_class = "GPTJForCausalLM",
     .model_type = "gptj",
     .tensors = {kGptjNames},
     .keys = {kGptSizes, kGptjKeys},
     .norm_key = "layer_norm_epsilon",
     .complete = complete_gptj,
     .is_only_read = true},
    {.name = "falcon",
     .model_class = "FalconForCausalLM",
     .model_type = "falcon",
     .tensors = {kFalconNames, kFalconNorms},
     .keys = {kFalconSizes},
     .norm_key = "layer_norm_epsilon",
     .complete = complete_falcon},
    {.name = "gpt-oss",
     .model_class = "GptOssForCausalLM",
     .model_type = "gpt_oss",
     .tensors = {kOutside, kGptOssNames, kAttention},
     .whole_names = kSinks,
     .keys = {kSizes, kWindow, kGptOssKeys},
     .complete = complete_gpt_oss},
    {.name = "qwen35",
     .model_class = "Qwen3_5ForCausalLM",
     .model_type = "qwen3_5_text",
     .other_type = "qwen3_5",
     .tensors = {kOutside, kDeltaNames, kAttention, kMlp},
     .whole_names = kDeltaWholeNames,
     .keys = {kSizes, kHeadSize, kDeltaKeys},
     .complete = complete_qwen35,
     .has_norms_plus_one = true,
     .has_rope_sections = true},
    {.name = "qwen35moe",
     .model_class = "Qwen3_5MoeForCausalLM",
     .model_type = "qwen3_5_moe_text",
     .other_type = "qwen3_5_moe",
     .tensors = {kOutside, kDeltaNames, kAttention, kQwenExperts},
     .whole_names = kDeltaWholeNames,
     .keys = {kSizes, kMoeKeys, kDeltaKeys},
     .complete = complete_qwen35,
     .has_norms_plus_one = true,
     .has_rope_sections = true},
    {.name = "deepseek2",
     .model_class = "DeepseekV2ForCausalLM",
     .model_type = "deepseek_v2",
     .tensors = {kOutside, kDeepseekNames, kAttention, kMlp},
     .keys = {kSizes, kDeepseekKeys},
     .complete = complete_deepseek2},
    {.name = "lfm2",
     .model_class = "Lfm2ForCausalLM",
     .model_type = "lfm2",
     .tensors = {kLfm2Names, kOutside, kAttention},
     .keys = {kLfm2Sizes},
     .norm_key = "norm_eps",
     .complete = complete_lfm2,
     .is_only_read = true},
};

}  // namespace

const GgufArchitecture& architecture_of(const GgufFile& file) {
  constexpr std::string_view kKey = "general.architecture";
  const std::optional<std::string> name = file.text(kKey);
  if (!name) file.refuse(kKey, "the model's architecture", "none: the file holds no model");
  if (*name == "clip")
    file.refuse(kKey, "a language model",
                "clip, the part of a model that sees images: name the file of the language model");
  if (*name == "llama" && file.number("llama.expert_count").value_or(0) > 0) return kMixtral;
  if (*name == "deepseek2" && file.whole("deepseek2.expert_gating_func") == kSigmoidGating) return kDeepseekV3;
  if (*name == "falcon" && file.find_tensor("blk.0.attn_norm_2.weight") != nullptr) return kFalconOfTwoNorms;
  const auto* found = std::ranges::find(kGgufArchitectures, *name, &GgufArchitecture::name);
  if (found != std::end(kGgufArchitectures)) return *found;
  std::vector<std::string> names;
  for (const GgufArchitecture& known : kGgufArchitectures) names.emplace_back(known.name);
  file.refuse(kKey, cat("an architecture that lancet reads from a GGUF file (", join(names), ")"),
              cat("'", printable(*name), "': take the model's safetensors"));
}

const GgufArchitecture* find_architecture(std::string_view model_type) {
  const auto is_it = [&](const GgufArchitecture& each) {
    return !each.is_only_read && (each.model_type == model_type || each.other_type == model_type);
  };
  for (const GgufArchitecture* other : kOtherClasses)
    if (is_it(*other)) return other;
  const auto* found = std::ranges::find_if(kGgufArchitectures, is_it);
  return found == std::end(kGgufArchitectures) ? nullptr : found;
}

std::string gguf_model_types() {
  std::vector<std::string> types;
  const auto add = [&](const GgufArchitecture& known) {
    for (const std::string_view type : {known.model_type, known.other_type})
      if (!type.empty() && !known.is_only_read) types.emplace_back(type);
  };
  for (const GgufArchitecture* other : kOtherClasses) add(*other);
  for (const GgufArchitecture& known : kGgufArchitectures) add(known);
  return join(types);
}

GgufChange change_of(const GgufArchitecture& architecture, const GgufTensorRow& row, std::string_view end) {
  if (row.change == GgufChange::kTransposed && end != ".weight") return GgufChange::kNone;
  if (row.change != GgufChange::kNone) return row.change;
  if (architecture.has_turned_heads && row.file.ends_with(".attn_q")) return GgufChange::kHeadRows;
  if (architecture.has_turned_heads && row.file.ends_with(".attn_k")) return GgufChange::kKvHeadRows;
  const bool is_norm = row.file.ends_with("_norm") && !row.file.ends_with(".ssm_norm") && end == ".weight";
  return architecture.has_norms_plus_one && is_norm ? GgufChange::kLessOne : GgufChange::kNone;
}

int64_t layers_beyond(const GgufFile& file) {
  return std::max<int64_t>(0, file.whole(own_key(file, "nextn_predict_layers")).value_or(0));
}

std::string own_key(const GgufFile& file, std::string_view key) {
  return cat(file.text("general.architecture").value_or(""), ".", key);
}

}  // namespace lancet
