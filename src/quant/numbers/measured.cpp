#include "measured.h"

#include <torch/types.h>

#include "packed_numbers.h"

namespace lancet {

size_t Measured::magnitude(const Tensor& values) { return one(values.abs().amax()); }
size_t Measured::least(const Tensor& values) { return one(values.amin()); }
size_t Measured::most(const Tensor& values) { return one(values.amax()); }

size_t Measured::not_a_number(const Tensor& codes) {
  constexpr int64_t kWithoutSign = 0x7f;  // all of its bits set: NaN
  const int64_t step = rows_at_a_time(codes.size(1), codes.device());
  Tensor found = torch::zeros({}, codes.options().dtype(at::kDouble));
  for (int64_t row = 0; row < codes.size(0); row += step) {
    const Tensor some = codes.narrow(0, row, std::min(step, codes.size(0) - row)).view(at::kByte);
    found = at::maximum(found, some.bitwise_and(kWithoutSign).amax().eq(kWithoutSign).to(at::kDouble));
  }
  return one(found);
}

size_t Measured::one(const Tensor& value) {
  tensors_.push_back(value.reshape({}).to(at::kDouble));
  return tensors_.size() - 1;
}

void Measured::read() {
  if (!tensors_.empty()) values_ = to_doubles(torch::stack(tensors_));
}

}  // namespace lancet
