// A model folder: checkpoint, configuration and tokenizer. No weight has been read yet.
// Defined in weight_loader.cpp.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/models/model_config.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// The parts of a model that can be opened without reading weights.
struct ModelFiles {
  Checkpoint checkpoint;
  ModelConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
};

/// Opens a model folder. If the tokenizer has more ids than the model has embeddings, it warns, and encode() then
/// refuses texts with such ids (limit_to_rows()). Throws: CheckpointError, TokenizerError.
ModelFiles open_model(const std::filesystem::path& folder, std::span<const std::string> ignore_config_keys);

/// A model for which config.json is enough.
struct DescribedModel {
  std::filesystem::path folder;
  ModelConfig config;
};

/// Reads a model's configuration. `model`: a folder as for open_model(), possibly without weights, or a config.json.
/// Throws: CheckpointError.
DescribedModel describe_model(const std::filesystem::path& model, std::span<const std::string> ignore_config_keys);

}  // namespace lancet
