// A loaded model's weights for other programs in the same process, with the names and shapes of the tensors in the
// model's files.
#pragma once

#include <string>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/models/model_files.h"

namespace lancet {

struct SharedTensor {
  std::string name = {};  ///< name of the tensor in the checkpoint
  Tensor tensor = {};     ///< the model's own memory; a view if the file stores it transposed
};

/// Returns all current weights, without a copy; a tied head is not among them. The result does not follow later calls
/// of set_weight(). Throws: ConfigError that names the weights that cannot be shared like this: those that are kept
/// packed, and those that are parts of one tensor in the files.
std::vector<SharedTensor> shared_tensors(const ModelFiles& files, const CausalLM& model);

}  // namespace lancet
