// `lancet export`: writes edits as an adapter for other programs, or a model without its provenance. docs/export.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/deltas/adapter.h"
#include "lancet/io/output_folder.h"
#include "lancet/spec/adapter_spec.h"

namespace lancet {

enum class AdapterFormat {
  kPeft,  ///< adapter_model.safetensors, adapter_config.json
  kGguf   ///< adapter.gguf, for llama.cpp
};
std::string adapter_format_name(AdapterFormat format);  ///< "peft", "gguf"

/// Returns the default type of factors. For GGUF it is f16: with bf16's 8 bits an edit fails now and then in llama.cpp,
/// and f32 has no advantage there.
constexpr DType factor_type_of(AdapterFormat format) {
  return format == AdapterFormat::kGguf ? DType::kF16 : DType::kF32;
}

/// Whether the output says where it comes from.
enum class Provenance {
  kKept,
  kStripped  ///< no report and no path of the model; only the manifest, which names the files
};

struct ExportAdapterJob {
  std::filesystem::path edited;  ///< an output of `lancet edit`, whose edits/ is read
  /// The edited model; empty: `edited` itself, or the place that its journal names.
  std::filesystem::path model = {};
  std::filesystem::path out;
  IfExists if_exists = IfExists::kError;
  AdapterFormat format = AdapterFormat::kPeft;
  DType dtype = DType::kF32;
  int64_t largest_rank = *AdapterSpec::kRank.fallback;  ///< one of kAdapterRanks
  ExcessRank excess = ExcessRank::kTruncate;
  Provenance provenance = Provenance::kKept;
};

/// Returns a job with the options of a section of AdapterSpec; its other fields are not set.
ExportAdapterJob parse_adapter_options(ConfigSection section);

/// Exports the changes of all edits that stand. The folder appears complete or not at all. Throws: ConfigError if the
/// output exists, for a folder without edits, if the model is not found, and as write_adapter() or
/// write_gguf_adapter(); CheckpointError for damaged edits.
AdapterReport export_adapter(const ExportAdapterJob& job);

/// Exports changes in memory in the same way. `job.model` is empty if the adapter should not name the model.
AdapterReport export_adapter(const ExportAdapterJob& job, const ModelConfig& config,
                             const std::vector<WeightChanges>& changes);

struct ExportModelJob {
  std::filesystem::path model;  ///< an output in any form, adapters included, or any model folder
  std::filesystem::path out;
  IfExists if_exists = IfExists::kError;
};

struct ExportModelReport {
  std::vector<std::string> files = {};  ///< names of the files that were written
  /// Names of the entries of the model folder, first level, that were not copied.
  std::vector<std::string> left_out = {};
};

/// Copies the files that programs load, and no others; an adapter loses the path of its model. The folder appears
/// complete or not at all. Throws: ConfigError if the output exists; CheckpointError.
ExportModelReport export_model(const ExportModelJob& job);

/// Returns the text of an adapter's export.json.
std::string to_json(const AdapterReport& report, const ExportAdapterJob& job);
std::string to_json(const ExportModelReport& report, const ExportModelJob& job);

}  // namespace lancet
