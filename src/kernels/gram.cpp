#include "lancet/kernels/gram.h"

#include <torch/types.h>

namespace lancet {

GramAccumulator::GramAccumulator(int64_t size, at::Device device)
    : sum_FF_(torch::zeros({size, size}, torch::TensorOptions(torch::kDouble).device(device))) {}

void GramAccumulator::add(const Tensor& rows_NF) {
  // Short chunks keep f32's rounding small: it grows with the number of rows summed in f32.
  constexpr int64_t kChunkRows = 4096;
  const Tensor precise = rows_NF.scalar_type() == torch::kDouble ? rows_NF : rows_NF.to(torch::kFloat);
  for (const Tensor& chunk : precise.split(kChunkRows)) sum_FF_ += torch::matmul(chunk.t(), chunk);
  rows_ += rows_NF.size(0);
}

}  // namespace lancet
