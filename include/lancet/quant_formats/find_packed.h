// Which tensors of a checkpoint a quantised matrix consists of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/quant_formats/packed_spec.h"
#include "lancet/quant_formats/quant_scheme.h"

namespace lancet {

/// What find_packed() looks at.
struct MatrixPlace {
  std::string_view name;  ///< name of the weight, as it would be stored if it were not quantised
  int64_t rows = 0, columns = 0;
  int64_t experts = 0;  ///< whose matrices of that size lie in one tensor; 0: the matrix has a tensor of its own
};

/// How the matrix is packed in the checkpoint. nullopt: it is not, and lies under its own name or not at all; or what
/// is there cannot be read, and why has been added to `problems` ("TENSOR: expected ..., got ..."). Of experts in one
/// tensor the spec is of any one's matrix, without a place among them, and counts the bytes of all.
std::optional<PackedSpec> find_packed(const QuantScheme& scheme, const Checkpoint& checkpoint, const MatrixPlace& place,
                                      std::vector<std::string>& problems);

/// Names of all tensors that have no meaning once the matrix lies in full precision: its parts, and what its module has
/// for computing with quantised inputs and outputs. Scales of kept keys and values keep theirs.
std::vector<std::string> tensors_of_packing(const QuantScheme& scheme, const Checkpoint& checkpoint,
                                            const PackedSpec& spec);

}  // namespace lancet
