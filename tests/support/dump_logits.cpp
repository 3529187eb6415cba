// dump_logits MODEL_DIR IDS.json OUT.safetensors f32|bf16|f64
// The logits of rows of token ids, for comparison with other implementations: `logits.<row>` [T, V], f32 (f64 for f64).
#include <torch/types.h>

#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/models/causal_lm.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

void dump(const std::string& folder, const std::string& ids_path, const std::string& out, at::ScalarType dtype) {
  const torch::NoGradGuard no_grad;
  const Checkpoint checkpoint = Checkpoint::open(folder);
  const ModelConfig config = load_model_config(checkpoint);
  const std::vector<at::Device> devices{Placement::host()};
  const CausalLM model = CausalLM::load(checkpoint, config, plan_placement(config.n_layers, devices, dtype));

  std::ifstream file(ids_path);
  const auto rows = nlohmann::json::parse(file).get<std::vector<std::vector<TokenId>>>();
  const TokenBatch batch = make_batch(rows);
  const Tensor h_BTD = model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
  std::vector<Tensor> logits;
  std::vector<TensorSource> sources;
  for (size_t row = 0; row < rows.size(); ++row) {
    const Tensor h_TD = h_BTD[static_cast<int64_t>(row)].slice(0, 0, static_cast<int64_t>(rows[row].size()));
    logits.push_back(model.logits(h_TD).to(dtype == torch::kDouble ? torch::kDouble : torch::kFloat).contiguous());
    sources.push_back(to_source("logits." + std::to_string(row), logits.back()));
  }
  write_safetensors(out, sources, {});
}

}  // namespace
}  // namespace lancet

int main(int argc, char** argv) {
  const std::map<std::string, at::ScalarType> dtypes{
      {"f32", torch::kFloat}, {"bf16", torch::kBFloat16}, {"f64", torch::kDouble}};
  if (argc != 5 || !dtypes.contains(argv[4])) {
    std::cerr << "usage: dump_logits MODEL_DIR IDS.json OUT.safetensors f32|bf16|f64\n";
    return 2;
  }
  try {
    lancet::dump(argv[1], argv[2], argv[3], dtypes.at(argv[4]));
    return 0;
  } catch (const lancet::Error& error) {
    std::cerr << error.what() << '\n';
    return static_cast<int>(error.exit_code());
  }
}
