#include "lancet/quant/tensor_slice.h"

#include <torch/types.h>

namespace lancet {

Tensor slice_of(const Tensor& stored, const PackedSpec& spec) {
  return spec.slice.is_whole() ? stored : slice_of_matrix(stored.select(0, spec.slice.matrix), spec);
}

Tensor slice_of_matrix(const Tensor& matrix, const PackedSpec& spec) {
  const TensorSlice& slice = spec.slice;
  if (slice.is_whole()) return matrix;
  return matrix.slice(0, slice.begin, slice.begin + (spec.rows - 1) * slice.step + 1, slice.step);
}

}  // namespace lancet
