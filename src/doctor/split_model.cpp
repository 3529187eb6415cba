#include "split_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/core/strings.h"
#include "lancet/models/causal_lm.h"

namespace lancet {
namespace {

ModelConfig split_config(int64_t n_layers) {
  const std::string text = cat(
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 128,
          "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256,
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "float32",
          "num_hidden_layers": )",
      n_layers, "}");
  return parse_model_config(text, "", {}, "the model of the device checks");
}

}  // namespace

Tensor split_model_logits(std::span<const at::Device> devices) {
  const torch::NoGradGuard no_grad;
  const ModelConfig config = split_config(std::max<int64_t>(2, static_cast<int64_t>(devices.size())));
  const Placement placement = plan_placement(config.n_layers, devices, torch::kFloat);
  at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/1);
  std::map<WeightId, Tensor> weights;
  for (const WeightSpec& spec : weight_table(config)) {
    const Tensor noise = torch::randn(spec.shape, generator, torch::kFloat);
    const bool is_norm = spec.shape.size() == 1;
    const Tensor weight = is_norm ? 1 + 0.1 * noise : noise / std::sqrt(static_cast<double>(spec.shape[1]));
    weights.emplace(spec.id, weight.to(weight_device(placement, spec.id)));
  }
  const CausalLM model = CausalLM::from_weights(config, placement, std::move(weights));
  std::vector<std::vector<TokenId>> rows(1);
  for (TokenId token = 0; token < 40; ++token) rows[0].push_back(token * 37 % 256);
  const TokenBatch batch = make_batch(rows);
  const Tensor h_BTD = model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
  return model.logits(h_BTD[0]).to(Placement::host());
}

}  // namespace lancet
