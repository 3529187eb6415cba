// A model folder: checkpoint, configuration and tokenizer, of which no weight is read yet.
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

/// What can be known without reading weights.
struct ModelFiles {
  Checkpoint checkpoint;
  ModelConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
};

/// Throws: CheckpointError, TokenizerError; also when the tokenizer has more ids than the model has embeddings.
ModelFiles open_model(const std::filesystem::path& folder, std::span<const std::string> ignore_config_keys);

/// A model of which config.json suffices.
struct DescribedModel {
  std::filesystem::path folder;
  ModelConfig config;
};

/// `model`: a folder as open_model() takes it, perhaps without weights, or a config.json. Throws: CheckpointError.
DescribedModel describe_model(const std::filesystem::path& model, std::span<const std::string> ignore_config_keys);

}  // namespace lancet
