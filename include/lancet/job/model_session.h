// A model folder opened for work: checkpoint, configuration, tokenizer, weights on their devices.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lancet/job/job_plan.h"
#include "lancet/models/causal_lm.h"
#include "lancet/runtime/communicator.h"
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

/// CPU threads of the process.
void set_threads(const RunOptions& run);

/// Devices, dtype and CPU threads as `run` says, layers as plan_job splits them for `work`; then the weights.
/// Throws: PlacementError, before a weight is read, when the work does not fit.
CausalLM load_model(const ModelFiles& files, const RunOptions& run, const JobWork& work);

/// Collective: load_model() on every rank.
CausalLM load_replica(const ModelFiles& files, const RunOptions& run, const JobWork& work, Communicator& communicator);

}  // namespace lancet
