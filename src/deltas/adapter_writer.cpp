#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "adapter_files.h"
#include "adapter_pairs.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

constexpr AdapterReader kPeft{"PEFT", why_no_lora};

std::string adapter_config_text(const std::vector<AdapterPair>& pairs, int64_t rank, const AdapterOptions& options) {
  using Json = nlohmann::ordered_json;
  Json modules = Json::array(), parameters = Json::array();
  bool is_transposed = false;
  for (const AdapterPair& pair : pairs) {
    if (const std::string& parameter = pair.module->parameter; parameter.empty())
      modules.push_back(pair.module->name);
    else if (parameters.empty() || parameters.back() != parameter)
      parameters.push_back(parameter);
    is_transposed = is_transposed || pair.module->parts.front().spec.stored.layout == Layout::kColumns;
  }
  Json config{{"alpha_pattern", Json::object()},
              {"base_model_name_or_path", options.base_model.empty() ? Json() : Json(options.base_model)},
              {"bias", "none"},
              {"fan_in_fan_out", is_transposed},
              {"inference_mode", true},
              {"init_lora_weights", true},
              {"lora_alpha", rank},
              {"lora_dropout", 0.0},
              {"modules_to_save", nullptr},
              {"peft_type", "LORA"},
              {"r", rank},
              {"rank_pattern", Json::object()},
              {"target_modules", modules},
              {"task_type", "CAUSAL_LM"},
              {"use_dora", false},
              {"use_rslora", false}};
  if (!parameters.empty()) config["target_parameters"] = std::move(parameters);
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Returns the joint factors of the pairs from `first` on: for experts lora_A is [experts * r, in], one expert after
/// another, and lora_B is [out, r * experts], direction by direction (tuners/lora/layer.py, ParamWrapper).
StoredPair stacked(const MadeAdapter& made, size_t first) {
  const auto count = static_cast<size_t>(made.pairs[first].module->stacked());
  if (count == 1) return made.stored[first];
  std::vector<Tensor> a, b;
  for (size_t i = first; i < first + count; ++i) {
    a.push_back(made.stored[i].a_RI);
    b.push_back(made.stored[i].b_OR);
  }
  return {torch::cat(a, 0), torch::stack(b, 2).flatten(1)};
}

}  // namespace

std::vector<WeightChanges> changes_in_adapter(const ModelConfig& config, std::span<const WeightChanges> changes,
                                              const AdapterOptions& options) {
  const MadeAdapter made = make_adapter(config, changes, options, kPeft);
  std::vector<ModulePair> pairs;
  for (size_t i = 0; i < made.pairs.size(); ++i)
    pairs.push_back({made.pairs[i].module,
                     without_zeros({made.stored[i].b_OR.to(at::kFloat), made.stored[i].a_RI.to(at::kFloat)})});
  return changes_of(config, pairs);
}

AdapterReport write_adapter(const std::filesystem::path& folder, const ModelConfig& config,
                            std::span<const WeightChanges> changes, const AdapterOptions& options) {
  const MadeAdapter made = make_adapter(config, changes, options, kPeft);
  AdapterReport report = made.report();
  std::vector<TensorSource> sources;
  std::vector<StoredPair> written;  // the sources borrow their memory
  for (size_t i = 0; i < made.pairs.size(); i += static_cast<size_t>(made.pairs[i].module->stacked())) {
    const std::string name = cat(kAdapterPrefix, made.pairs[i].module->name_in_file());
    const StoredPair& pair = written.emplace_back(stacked(made, i));
    sources.push_back(to_source(cat(name, kLoraA), pair.a_RI));
    sources.push_back(to_source(cat(name, kLoraB), pair.b_OR));
  }
  write_safetensors(folder / kAdapterWeights, sources, {{"format", "pt"}});
  write_text_file(folder / kAdapterConfig, adapter_config_text(made.pairs, report.rank, options));
  report.file_bytes = static_cast<int64_t>(std::filesystem::file_size(folder / kAdapterWeights));
  return report;
}

}  // namespace lancet
