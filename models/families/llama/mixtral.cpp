// Mixtral (arXiv 2401.04088): Mistral with experts instead of MLPs.
#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_mixtral(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {}, /*default_eps=*/1e-5, /*default_theta=*/1e6);
  read_windows(keys, config, [](int64_t) { return true; });
  config.experts = read_experts(keys, "num_local_experts", {.count = 8, .chosen = 2});
  config.experts.d_ffn = config.d_ffn;
  config.experts.sums_to_one = true;
  config.experts.layers.assign(static_cast<size_t>(config.n_layers), true);
}

}  // namespace

constinit const Family mixtral = {
    .name = "Mixtral",
    .architectures = {"MixtralForCausalLM"},
    .model_types = {"mixtral"},
    .understood_keys = llama_keys({"sliding_window", "num_local_experts", "num_experts_per_tok"}),
    .harmless_keys = {"router_aux_loss_coef", "output_router_logits", "router_jitter_noise"},
    .weights = rows_of({llama_rows(), kMixtralExperts}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_mixtral};

}  // namespace lancet
