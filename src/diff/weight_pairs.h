// The weights that two checkpoints have in common, and their numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/models/weight_table.h"

namespace lancet {

/// A checkpoint that is compared.
class ComparedModel {
 public:
  /// Throws: CheckpointError.
  explicit ComparedModel(const std::filesystem::path& folder);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const ModelConfig& config() const { return config_; }
  /// Returns the weights in model order; each expert's part of a weight is one of its own.
  const std::vector<WeightSpec>& weights() const { return weights_; }
  /// `expert`: 0 for weights without experts. nullptr: the model has no such weight.
  const WeightSpec* find(WeightId id, size_t expert) const;

  /// A hash of type, shape and bytes of all that the weight is read from.
  std::string content(const WeightSpec& spec);
  /// Its numbers in its own shape, in the stored type or, unpacked, in f32.
  Tensor read(const WeightSpec& spec, at::Device device) const;
  /// "BF16", or how it is quantised.
  std::string type_name(const WeightSpec& spec) const;
  /// Names of tensors that no weight is read from.
  std::vector<std::string> other_tensors() const;

 private:
  Checkpoint checkpoint_;
  ModelConfig config_;
  std::vector<WeightSpec> weights_;
  std::map<std::pair<WeightId, size_t>, size_t> place_of_;
  std::map<std::string, std::string> content_;  ///< hash of each stored tensor that was asked for
};

}  // namespace lancet
