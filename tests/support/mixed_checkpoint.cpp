// answer_jobs mixed_checkpoint JOBS.json
// Writes model folders of which some quantised matrices lie in full precision, for comparison with other programs.
// JOBS.json: an object of jobs, each {"config": text, "modules": [...], "others": [...]}, answered by the text with the
// modules named as not quantised; with {"folder", "target", "dtype", "shapes": {MODULE: [out, in]}} as well the
// folder's matrices of these modules are unpacked and take the place of their parts in `target`. Prints an object of
// answers; of a job that is refused "error".
#include <torch/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lancet/checkpoint/checkpoint_export.h"
#include "lancet/core/strings.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/quant_formats/find_packed.h"
#include "lancet/quant_formats/unquantised_modules.h"
#include "support/answer_jobs.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

std::vector<std::string> mixed_names(const Json& job, const char* key) {
  return job.value(key, std::vector<std::string>());
}

void write_mixed(const Json& job, const std::string& config) {
  const Checkpoint base = Checkpoint::open(job.at("folder").get<std::string>());
  const QuantScheme scheme = QuantScheme::parse(base.config_text(), {}, "config.json").value();
  const at::ScalarType dtype = job.at("dtype") == "f32" ? torch::kFloat : torch::kBFloat16;
  std::vector<Tensor> matrices;  // own the bytes
  std::vector<TensorExchange> exchanged;
  std::vector<std::string> problems;
  for (const auto& [module, shape] : job.at("shapes").items()) {
    const std::string name = module + ".weight";
    const auto spec = find_packed(scheme, base, {name, shape[0].get<int64_t>(), shape[1].get<int64_t>()}, problems);
    if (!spec) throw CheckpointError(name + ": not quantised: " + join(problems));
    TensorExchange& exchange = exchanged.emplace_back();
    exchange.removed = tensors_of_packing(scheme, base, *spec);
    matrices.push_back(read_packed(base, *spec, Placement::host()).unpack(dtype));
    exchange.added.push_back(to_source(name, matrices.back()));
  }
  const std::filesystem::path target = job.at("target").get<std::string>();
  std::filesystem::create_directories(target);
  export_checkpoint(base, {.exchanged = exchanged, .config_text = config}, target);
}

Json mixed_answer(const Json& job) {
  const std::string config =
      with_unquantised(job.at("config").get<std::string>(), mixed_names(job, "modules"), mixed_names(job, "others"));
  if (job.contains("target")) write_mixed(job, config);
  return config;
}

}  // namespace

nlohmann::json testing::mixed_checkpoint(const nlohmann::json& job) { return mixed_answer(job); }

}  // namespace lancet
