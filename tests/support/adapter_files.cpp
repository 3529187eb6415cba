// answer_jobs adapter_files JOBS.json
// Writes and reads adapters, for comparison with PEFT. JOBS.json: an object of jobs, each with "model": a folder.
// {"changes": FILE, "out": FOLDER, "options": {"base_model", "largest_rank", "dtype", "truncate"}} writes an adapter
// (with "gguf": true one for llama.cpp, and OUT is its file) of the file's changes, "NAME|N|left" and "NAME|N|right" or
// "NAME|N|full" for weight NAME's N-th, and answers with the report. {"adapter": FOLDER, "out": FILE} reads one and
// writes the sum of each weight's changes under its name, f64; the answer is the list of names. Of a job that is
// refused the answer is {"error", "exit_code"}.
#include <torch/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lancet/core/strings.h"
#include "lancet/deltas/adapter.h"
#include "lancet/deltas/gguf_adapter.h"
#include "lancet/models/tensor_io.h"
#include "support/answer_jobs.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

std::vector<WeightChanges> changes_in(const std::string& path, const ModelConfig& config) {
  const SafetensorsReader file = SafetensorsReader::open(path);
  std::vector<WeightChanges> changes;
  for (const WeightSpec& spec : weight_table(config)) {
    WeightChanges weight{spec.id, {}};
    const auto tensor = [&](const char* what) {
      return to_tensor(file.view(cat(spec.name, "|", weight.deltas.size(), "|", what))).clone();
    };
    for (bool found = true; found;) {
      const std::string name = cat(spec.name, "|", weight.deltas.size());
      found = file.contains(name + "|left") || file.contains(name + "|full");
      if (file.contains(name + "|left"))
        weight.deltas.emplace_back(LowRankDelta{tensor("left"), tensor("right")});
      else if (found)
        weight.deltas.emplace_back(DenseDelta{tensor("full")});
    }
    if (!weight.deltas.empty()) changes.push_back(std::move(weight));
  }
  return changes;
}

Json write_one(const Json& job, const ModelConfig& config) {
  const Json given = job.value("options", Json::object());
  AdapterOptions options{.base_model = given.value("base_model", ""), .largest_rank = given.value("largest_rank", 512)};
  if (given.value("truncate", false)) options.excess = ExcessRank::kTruncate;
  if (given.contains("dtype")) options.dtype = parse_dtype(given["dtype"].get<std::string>()).value();
  const std::filesystem::path out = job.at("out").get<std::string>();
  const std::vector<WeightChanges> changes = changes_in(job.at("changes").get<std::string>(), config);
  const bool is_gguf = job.value("gguf", false);
  if (!is_gguf) std::filesystem::create_directories(out);
  const AdapterReport report =
      is_gguf ? write_gguf_adapter(out, config, changes, options) : write_adapter(out, config, changes, options);
  Json modules = Json::object();
  for (const AdapterModule& module : report.modules)
    modules[module.name] = {{"directions", module.directions},
                            {"numeric_rank", module.numeric_rank},
                            {"norm", module.norm},
                            {"lost_norm", module.lost_norm}};
  return {{"rank", report.rank}, {"modules", modules}, {"file_bytes", report.file_bytes}};
}

Json read_one(const Json& job, const ModelConfig& config) {
  NamedTensors sums;
  for (const WeightChanges& weight : read_adapter(job.at("adapter").get<std::string>(), config)) {
    Tensor sum = to_dense(weight.deltas.front()).to(at::kDouble);
    for (size_t i = 1; i < weight.deltas.size(); ++i) sum = sum + to_dense(weight.deltas[i]);
    sums.emplace_back(weight_name(config, weight.id), sum.contiguous());
  }
  std::vector<TensorSource> sources;
  Json names = Json::array();
  for (const auto& [name, tensor] : sums) {
    sources.push_back(to_source(name, tensor));
    names.push_back(name);
  }
  write_safetensors(job.at("out").get<std::string>(), sources, {});
  return names;
}

Json adapter_answer(const Json& job) {
  const ModelConfig config = load_model_config(Checkpoint::open(job.at("model").get<std::string>()));
  return job.contains("adapter") ? read_one(job, config) : write_one(job, config);
}

}  // namespace

nlohmann::json testing::adapter_files(const nlohmann::json& job) { return adapter_answer(job); }

}  // namespace lancet
