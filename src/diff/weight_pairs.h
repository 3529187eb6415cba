// The weights that two checkpoints both have, and their numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/models/weight_table.h"

namespace lancet {

/// One of the two checkpoints to compare.
class ComparedModel {
 public:
  /// Throws: CheckpointError.
  explicit ComparedModel(const std::filesystem::path& folder);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const ModelConfig& config() const { return config_; }
  /// Returns the weights in model order. Each expert's part of a weight is a weight of its own.
  const std::vector<WeightSpec>& weights() const { return weights_; }
  /// `expert`: 0 for weights without experts. Returns nullptr if the model has no such weight.
  const WeightSpec* find(WeightId id, size_t expert) const;

  /// Returns a hash of the type, shape and bytes of everything from which the weight is read.
  std::string content(const WeightSpec& spec);
  /// Returns the weight's numbers in its own shape, in the stored type, or in f32 if the weight is quantised.
  Tensor read(const WeightSpec& spec, at::Device device) const;
  /// Returns "BF16", or the name of the quantisation.
  std::string type_name(const WeightSpec& spec) const;
  /// Returns the names of tensors that belong to no weight.
  std::vector<std::string> other_tensors() const;

 private:
  Checkpoint checkpoint_;
  ModelConfig config_;
  std::vector<WeightSpec> weights_;
  std::map<std::pair<WeightId, size_t>, size_t> place_of_;
  std::map<std::string, std::string> content_;  ///< hashes of the stored tensors that were needed so far
};

}  // namespace lancet
