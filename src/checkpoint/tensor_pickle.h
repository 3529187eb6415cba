// What the pickle of torch.save says of one tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zip_file.h"

namespace lancet {

struct TensorPickle {
  std::string storage_type;  ///< "FloatStorage"
  std::string storage_key;   ///< the record's name below data/
  int64_t storage_numel = 0;
  int64_t offset = 0;  ///< place of the first number in the storage
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};

/// Throws: CheckpointError at `place` for whatever torch.save does not write for a tensor.
TensorPickle parse_tensor_pickle(std::string_view pickle, const ZipPlace& place);

}  // namespace lancet
