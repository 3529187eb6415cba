// mixed_checkpoint JOBS.json
// Writes model folders of which some quantised matrices lie in full precision, for comparison with other programs.
// JOBS.json: an object of jobs, each {"config": text, "modules": [...], "others": [...]}, answered by the text with the
// modules named as not quantised; with {"folder", "target", "dtype", "shapes": {MODULE: [out, in]}} as well the
// folder's matrices of these modules are unpacked and take the place of their parts in `target`. Prints an object of
// answers; of a job that is refused "error".
#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/checkpoint_export.h"
#include "lancet/models/tensor_io.h"
#include "lancet/models/tensor_reader.h"
#include "lancet/quant/packed_matrix.h"
#include "lancet/quant_scheme/unquantised_modules.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

std::vector<std::string> mixed_names(const Json& job, const char* key) {
  return job.value(key, std::vector<std::string>());
}

Tensor unpacked_matrix(const Checkpoint& checkpoint, const PackedSpec& spec, at::ScalarType dtype) {
  std::vector<Tensor> parts;
  for (const PackedPart& part : spec.parts) {
    if (part.role == PartRole::kRecord) {
      parts.emplace_back();
      continue;
    }
    const TensorView view = checkpoint.view(part.tensor);
    const std::vector<TensorRead> reads{{view, Placement::host(), to_scalar_type(view.dtype)}};
    parts.push_back(read_tensors(reads, [](int64_t) {}).front());
  }
  return PackedMatrix::assemble(spec, parts).unpack(dtype);
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
    matrices.push_back(unpacked_matrix(base, *spec, dtype));
    exchange.added.push_back(to_source(name, matrices.back()));
  }
  const std::filesystem::path target = job.at("target").get<std::string>();
  std::filesystem::create_directories(target);
  export_checkpoint(base, {.exchanged = exchanged, .config_text = config}, target);
}

Json answer_mixed(const Json& job) {
  try {
    const std::string config =
        with_unquantised(job.at("config").get<std::string>(), mixed_names(job, "modules"), mixed_names(job, "others"));
    if (job.contains("target")) write_mixed(job, config);
    return config;
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace
}  // namespace lancet

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: mixed_checkpoint JOBS.json\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  nlohmann::json answers = nlohmann::json::object();
  const nlohmann::json jobs = nlohmann::json::parse(file);
  for (const auto& [name, job] : jobs.items()) answers[name] = lancet::answer_mixed(job);
  std::cout << answers.dump() << '\n';
  return 0;
}
