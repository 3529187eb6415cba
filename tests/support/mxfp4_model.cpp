#include "mxfp4_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"

namespace lancet::testing {
namespace {

constexpr uint64_t kSeed = 77;

nlohmann::json config_of(int64_t n_layers) {
  return {{"architectures", {"GptOssForCausalLM"}},
          {"model_type", "gpt_oss"},
          {"vocab_size", 4096},
          {"hidden_size", 32},
          {"intermediate_size", 64},
          {"num_hidden_layers", n_layers},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 16},
          {"max_position_embeddings", 256},
          {"tie_word_embeddings", false},
          {"bos_token_id", 1},
          {"eos_token_id", 2},
          {"num_local_experts", 4},
          {"num_experts_per_tok", 2},
          {"sliding_window", 8},
          {"attention_bias", true},
          {"torch_dtype", "float32"},
          {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 150000.0}}}};
}

/// [experts, in, out] of [experts, out, in / 32, 16] and [experts, out, in / 32], by the definition.
Tensor unpacked(const Tensor& blocks, const Tensor& scales) {
  const Tensor table = torch::tensor({0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0}), codes = blocks.to(at::kLong);
  const Tensor both = torch::stack({codes.remainder(16), codes.div(16, "floor")}, 4).flatten(3);
  const Tensor numbers = table.index({both.remainder(8)}) * (1 - 2 * both.div(8, "floor"));
  const Tensor powers = torch::pow(2.0, scales.to(at::kDouble) - 127).unsqueeze(3);
  return (numbers * powers).flatten(2).transpose(1, 2).to(at::kFloat);
}

void write(const std::filesystem::path& folder, int64_t n_layers, bool is_packed) {
  nlohmann::json config = config_of(n_layers);
  write_random_model(folder, config.dump(), kSeed);
  at::Generator generator = at::detail::createCPUGenerator(kSeed);
  std::vector<std::pair<std::string, Tensor>> stored;
  {
    const Checkpoint plain = Checkpoint::open(folder);
    for (const std::string& name : plain.tensor_names()) {
      const TensorView view = plain.view(name);
      if (!name.ends_with("_proj") || view.shape.size() != 3) {
        stored.emplace_back(name, to_tensor(view).clone());
        continue;
      }
      const int64_t experts = view.shape[0], in = view.shape[1], out = view.shape[2];
      const Tensor blocks = torch::randint(0, 256, {experts, out, in / 32, 16}, generator, at::kByte);
      const Tensor scales = torch::randint(121, 125, {experts, out, in / 32}, generator, at::kByte);
      if (is_packed) {
        stored.emplace_back(name + "_blocks", blocks);
        stored.emplace_back(name + "_scales", scales);
      } else {
        stored.emplace_back(name, unpacked(blocks, scales).contiguous());
      }
    }
  }
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : stored) sources.push_back(to_source(name, tensor));
  write_safetensors(folder / "model.safetensors", sources, {{"format", "pt"}});
  if (!is_packed) return;
  config["quantization_config"] = {
      {"quant_method", "mxfp4"},
      {"modules_to_not_convert",
       {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}}};
  write_text_file(folder / "config.json", config.dump());
}

}  // namespace

Mxfp4Twins mxfp4_twins(int64_t n_layers) {
  return {TinyModel([&](const std::filesystem::path& folder) { write(folder, n_layers, true); }),
          TinyModel([&](const std::filesystem::path& folder) { write(folder, n_layers, false); })};
}

}  // namespace lancet::testing
