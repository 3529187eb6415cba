// answer_jobs dump_logits JOBS.json: an object of jobs by name, each of
//   folder   a model
//   rows     token ids, computed as one batch
//   dtype    f32, bf16 or f64
//   out      file for `logits.<row>` [T, V], f32 (f64 for f64), for comparison with other implementations
// Prints an object of answers: how many rows, or "error" and "exit_code".
#include <torch/types.h>

#include <map>
#include <nlohmann/json.hpp>

#include "lancet/models/causal_lm.h"
#include "lancet/models/tensor_io.h"
#include "support/answer_jobs.h"

namespace lancet {
namespace {

const std::map<std::string, at::ScalarType> kLogitTypes{
    {"f32", torch::kFloat}, {"bf16", torch::kBFloat16}, {"f64", torch::kDouble}};

nlohmann::json dump(const nlohmann::json& job) {
  const torch::NoGradGuard no_grad;
  const Checkpoint checkpoint = Checkpoint::open(job.at("folder").get<std::string>());
  const at::ScalarType dtype = kLogitTypes.at(job.at("dtype").get<std::string>());
  const ModelConfig config = load_model_config(checkpoint);
  const std::vector<at::Device> devices{Placement::host()};
  const CausalLM model = CausalLM::load(checkpoint, config, plan_placement(config.n_layers, devices, dtype));

  const auto rows = job.at("rows").get<std::vector<std::vector<TokenId>>>();
  const TokenBatch batch = make_batch(rows);
  const Tensor h_BTD = model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
  std::vector<Tensor> logits;
  std::vector<TensorSource> sources;
  for (size_t row = 0; row < rows.size(); ++row) {
    const Tensor h_TD = h_BTD[static_cast<int64_t>(row)].slice(0, 0, static_cast<int64_t>(rows[row].size()));
    logits.push_back(model.logits(h_TD).to(dtype == torch::kDouble ? torch::kDouble : torch::kFloat).contiguous());
    sources.push_back(to_source("logits." + std::to_string(row), logits.back()));
  }
  write_safetensors(job.at("out").get<std::string>(), sources, {});
  return rows.size();
}

}  // namespace

nlohmann::json testing::dump_logits(const nlohmann::json& job) { return dump(job); }

}  // namespace lancet
