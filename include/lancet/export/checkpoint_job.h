// `lancet export checkpoint`: writes the model of a GGUF file as a folder in Hugging Face's form. docs/export.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/core/dtype.h"
#include "lancet/io/output_folder.h"

namespace lancet {

struct ExportCheckpointJob {
  std::filesystem::path model;  ///< a GGUF file, or a folder that has one
  std::filesystem::path out;
  IfExists if_exists = IfExists::kError;
  /// Type of the weights; nullopt: the file's, where it has plain numbers, else bfloat16.
  std::optional<DType> dtype = {};
  uint64_t shard_bytes = uint64_t{4} << 30;  ///< a file of weights has at most so many, if a tensor does not have more
};

struct ExportCheckpointReport {
  std::vector<std::string> files = {};  ///< names of the files that were written
  DType dtype = DType::kBF16;
  int64_t weight_bytes = 0;
};

/// Writes config.json, the tokenizer's files and the weights, unpacked, as the model's class in transformers names
/// them. The folder appears complete or not at all. Throws: ConfigError for an output that exists, and for a model that
/// is no GGUF file; CheckpointError; NumericError for numbers that the type cannot hold.
ExportCheckpointReport export_checkpoint_folder(const ExportCheckpointJob& job);

std::string to_json(const ExportCheckpointReport& report, const ExportCheckpointJob& job);

}  // namespace lancet
