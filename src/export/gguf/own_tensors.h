// A model's tensors as its class in transformers has them, whatever names, forms and types the files have.
#pragma once

#include <string>
#include <vector>

#include "lancet/models/model_files.h"
#include "lancet/models/weight_table.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

struct OwnTensor {
  std::string name;
  std::vector<int64_t> shape;
};

/// Tensors that are filled together: those of the experts of a layer, or one that has several weights.
struct OwnGroup {
  std::vector<OwnTensor> tensors;
  std::vector<size_t> weights;  ///< places in the table of weights
};

enum class TensorsForm {
  kClass,  ///< what the model's class saves
  kGguf    ///< each expert's matrices in tensors of their own, and value heads in the order of GGUF files
};

class OwnTensors {
 public:
  explicit OwnTensors(const ModelFiles& files, TensorsForm form);

  const std::vector<OwnGroup>& groups() const { return groups_; }
  /// Returns the tensors of a group, contiguous and on the host. Throws: CheckpointError; NumericError for packed
  /// numbers that `type` cannot hold.
  std::vector<Tensor> read(const OwnGroup& group, at::ScalarType type) const;

 private:
  const ModelFiles& files_;
  TensorsForm form_;
  std::vector<WeightSpec> own_;     ///< as the model's class has its tensors
  std::vector<WeightSpec> stored_;  ///< the same weights as the files have them
  std::vector<OwnGroup> groups_;
};

}  // namespace lancet
