// What packing anew and packing again have in common.
#pragma once

#include "stored_parts.h"
#include "sweep.h"

namespace lancet {

/// Throws: std::logic_error for a weight or an importance that is not of the matrix's shape.
void check_shapes(const Tensor& weight, const PackedSpec& spec, const Tensor& importance);

/// Packs a matrix into `parts`, which have the types and shapes that the file has. Throws: as repack().
void fill_parts(StoredParts& parts, const Matrices& matrices, const PackedSpec& spec, const Tensor& importance_II,
                const PackOptions& options);

/// Returns the tensor of each of `spec.parts`; records are those of `records`.
std::vector<Tensor> all_parts(const StoredParts& parts, const PackedSpec& spec, std::span<const Tensor> records);

}  // namespace lancet
