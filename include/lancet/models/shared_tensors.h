// A loaded model's weights under the names, and in the shapes, of the tensors in its files, for other programs in the
// same process.
#pragma once

#include <string>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/models/model_files.h"

namespace lancet {

struct SharedTensor {
  std::string name = {};  ///< name that the checkpoint stores it under
  Tensor tensor = {};     ///< the model's own memory, as a view where the file has it transposed
};

/// Returns all weights, as they are; of a tied head none. What set_weight() puts in a weight's place later is not seen.
/// Throws: ConfigError that says which weights cannot be shown so: those that are kept packed, and those that are parts
/// of one tensor in the files.
std::vector<SharedTensor> shared_tensors(const ModelFiles& files, const CausalLM& model);

}  // namespace lancet
