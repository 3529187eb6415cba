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
  Json modules = Json::array();
  bool is_transposed = false;
  for (const AdapterPair& pair : pairs) {
    modules.push_back(pair.module->name);
    is_transposed = is_transposed || pair.module->parts.front().spec.stored.layout == Layout::kColumns;
  }
  const Json config{{"alpha_pattern", Json::object()},
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
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
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
  for (size_t i = 0; i < made.pairs.size(); ++i) {
    const std::string name = cat(kAdapterPrefix, made.pairs[i].module->name);
    sources.push_back(to_source(cat(name, kLoraA), made.stored[i].a_RI));
    sources.push_back(to_source(cat(name, kLoraB), made.stored[i].b_OR));
  }
  write_safetensors(folder / kAdapterWeights, sources, {{"format", "pt"}});
  write_text_file(folder / kAdapterConfig, adapter_config_text(made.pairs, report.rank, options));
  report.file_bytes = static_cast<int64_t>(std::filesystem::file_size(folder / kAdapterWeights));
  return report;
}

}  // namespace lancet
