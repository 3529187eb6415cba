#include "family_models.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lancet/io/files.h"

namespace lancet::testing {
namespace {

using Json = nlohmann::json;

Json merged(Json base, const Json& more) {
  base.update(more);
  return base;
}

Json llama_like(const std::string& architecture, const Json& more) {
  return merged({{"architectures", {architecture}},
                 {"vocab_size", 4096},
                 {"hidden_size", 32},
                 {"intermediate_size", 48},
                 {"num_hidden_layers", 5},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"max_position_embeddings", 256},
                 {"rms_norm_eps", 1e-5},
                 {"tie_word_embeddings", false},
                 {"torch_dtype", "float32"},
                 {"eos_token_id", 2}},
                more);
}

Json gpt(const std::string& architecture, const Json& more) {
  return merged({{"architectures", {architecture}},
                 {"vocab_size", 4096},
                 {"n_embd", 32},
                 {"n_inner", 48},
                 {"n_layer", 5},
                 {"n_head", 4},
                 {"n_positions", 256},
                 {"torch_dtype", "float32"},
                 {"eos_token_id", 2}},
                more);
}

Json neox(const Json& more) {
  Json config = llama_like("GPTNeoXForCausalLM", {{"layer_norm_eps", 1e-5}, {"rotary_pct", 0.5}});
  for (const char* key : {"num_key_value_heads", "rms_norm_eps"}) config.erase(key);
  return merged(config, more);
}

/// Dense families, a file each, which the parity tests read too.
void add_from_files(std::vector<FamilyModel>& models) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(LANCET_SOURCE_DIR "/tests/fixtures/families"))
    files.push_back(entry.path());
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files)
    models.push_back(
        {file.stem().string(), Json::parse(read_text_file(file, "a family's file")).at("config").dump(), true});
}

std::vector<FamilyModel> made_models() {
  std::vector<FamilyModel> models{
      {"Llama", llama_like("LlamaForCausalLM", Json::object()).dump()},
      {"MistralWindow", llama_like("MistralForCausalLM", {{"sliding_window", 5}, {"head_dim", 12}}).dump()},
      {"Qwen2",
       llama_like("Qwen2ForCausalLM", {{"use_sliding_window", true}, {"sliding_window", 5}, {"max_window_layers", 2}})
           .dump()},
      {"Qwen3", llama_like("Qwen3ForCausalLM", {{"head_dim", 12}, {"attention_bias", true}}).dump()},
      {"Qwen3Moe", llama_like("Qwen3MoeForCausalLM", {{"head_dim", 12},
                                                      {"num_experts", 6},
                                                      {"num_experts_per_tok", 2},
                                                      {"moe_intermediate_size", 20},
                                                      {"norm_topk_prob", true},
                                                      {"mlp_only_layers", {2}}})
                       .dump()},
      {"Mixtral", llama_like("MixtralForCausalLM", {{"num_local_experts", 4}, {"intermediate_size", 24}}).dump()},
      {"Phi3", llama_like("Phi3ForCausalLM", {{"partial_rotary_factor", 0.75}}).dump()},
      {"Gemma", llama_like("GemmaForCausalLM", {{"head_dim", 12}, {"tie_word_embeddings", true}}).dump()},
      {"Gemma2", llama_like("Gemma2ForCausalLM", {{"head_dim", 12},
                                                  {"query_pre_attn_scalar", 20},
                                                  {"attn_logit_softcapping", 2.0},
                                                  {"final_logit_softcapping", 5.0},
                                                  {"sliding_window", 5}})
                     .dump()},
      {"Gemma3", llama_like("Gemma3ForCausalLM", {{"head_dim", 12},
                                                  {"query_pre_attn_scalar", 20},
                                                  {"sliding_window", 5},
                                                  {"sliding_window_pattern", 3},
                                                  {"rope_theta", 1e6},
                                                  {"rope_local_base_freq", 1e4}})
                     .dump()},
      {"Olmo2", llama_like("Olmo2ForCausalLM", Json::object()).dump()},
      {"Gpt2", gpt("GPT2LMHeadModel", Json::object()).dump()},
      {"Gptj", gpt("GPTJForCausalLM", {{"rotary_dim", 4}}).dump()},
      {"Neox", neox(Json::object()).dump()},
      {"StableLm",
       llama_like("StableLmForCausalLM", {{"layer_norm_eps", 1e-5}, {"partial_rotary_factor", 0.5}}).dump()},
      {"NeoxSequential", neox({{"use_parallel_residual", false}, {"attention_bias", false}}).dump()}};
  add_from_files(models);
  return models;
}

}  // namespace

const std::vector<FamilyModel>& family_models() {
  static const std::vector<FamilyModel> kModels = made_models();
  return kModels;
}

}  // namespace lancet::testing
