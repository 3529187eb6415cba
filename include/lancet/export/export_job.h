// `lancet export`: edits as an adapter for other programs, and a model without where it came from. docs/export.md.
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

/// Returns the type of factors where nobody says it. In a GGUF file f16: bf16's 8 bits flip an edit now and then in
/// llama.cpp, and f32 brings nothing there.
constexpr DType factor_type_of(AdapterFormat format) {
  return format == AdapterFormat::kGguf ? DType::kF16 : DType::kF32;
}

/// What goes out besides what a reader needs.
enum class Provenance {
  kKept,
  kStripped  ///< no report, no path of the model; the manifest alone, which names the files
};

struct ExportAdapterJob {
  std::filesystem::path edited;      ///< an output of `lancet edit`, whose edits/ is read
  std::filesystem::path model = {};  ///< what was edited; empty: `edited` itself, or where its journal says it lay
  std::filesystem::path out;
  IfExists if_exists = IfExists::kError;
  AdapterFormat format = AdapterFormat::kPeft;
  DType dtype = DType::kF32;
  int64_t largest_rank = *AdapterSpec::kRank.fallback;  ///< one of kAdapterRanks
  ExcessRank excess = ExcessRank::kTruncate;
  Provenance provenance = Provenance::kKept;
};

/// A job with what a section of AdapterSpec says, and nothing else.
ExportAdapterJob parse_adapter_options(ConfigSection section);

/// The folder appears complete or not at all. The changes are those of all edits that stand.
/// Throws: ConfigError for an output that is there, a folder without edits, a model that is not found, and as
/// write_adapter() or write_gguf_adapter(); CheckpointError for edits that are damaged.
AdapterReport export_adapter(const ExportAdapterJob& job);

/// Exports changes that are in memory in the same way; `job.model`: empty where the adapter is not to tell it.
AdapterReport export_adapter(const ExportAdapterJob& job, const ModelConfig& config,
                             const std::vector<WeightChanges>& changes);

struct ExportModelJob {
  std::filesystem::path model;  ///< an output in any form, adapters among them, or any model folder
  std::filesystem::path out;
  IfExists if_exists = IfExists::kError;
};

struct ExportModelReport {
  std::vector<std::string> files = {};     ///< that were written, by name
  std::vector<std::string> left_out = {};  ///< entries of the model's folder, first level
};

/// A copy with the files that programs load, and no others; of an adapter without the path of its model. The folder
/// appears complete or not at all. Throws: ConfigError for an output that is there; CheckpointError.
ExportModelReport export_model(const ExportModelJob& job);

/// export.json of an adapter.
std::string to_json(const AdapterReport& report, const ExportAdapterJob& job);
std::string to_json(const ExportModelReport& report, const ExportModelJob& job);

}  // namespace lancet
