#include "lancet/quant/packed_matrix.h"

#include <torch/types.h>

#include <algorithm>
#include <stdexcept>

#include "blocks.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/devices.h"
#include "packed_numbers.h"

namespace lancet {
namespace {

/// Bytes of each number that is unpacked at a time: in the type of the arithmetic; a pair's place in its table, or a
/// plane's words twice; scales of each where the columns have an order, and of blocks that do not end with rows.
constexpr int64_t kScratchOfNumber = 4 + 4 + 4;

}  // namespace

PackedMatrix::PackedMatrix(PackedNumbers numbers)
    : numbers_(std::make_shared<const PackedNumbers>(std::move(numbers))) {}

int64_t PackedMatrix::rows() const { return numbers_->rows; }
int64_t PackedMatrix::columns() const { return numbers_->columns; }
at::Device PackedMatrix::device() const { return numbers_->codes.device(); }
double PackedMatrix::largest() const { return numbers_->largest; }

int64_t PackedMatrix::bytes() const {
  int64_t bytes = 0;
  PackedNumbers::for_each(*numbers_, [&](const Tensor& tensor) { bytes += static_cast<int64_t>(tensor.nbytes()); });
  return bytes;
}

PackedMatrix PackedMatrix::to(at::Device device) const {
  const torch::NoGradGuard no_grad;
  PackedNumbers moved = *numbers_;
  PackedNumbers::for_each(moved, [&](Tensor& tensor) { tensor = tensor.to(device); });
  return PackedMatrix(std::move(moved));
}

Tensor PackedMatrix::unpack(at::ScalarType dtype) const {
  Tensor out = torch::empty({rows(), columns()}, torch::TensorOptions(dtype).device(device()));
  unpack_rows(0, out);
  return out;
}

void PackedMatrix::unpack_rows(int64_t begin, const Tensor& out) const {
  const torch::NoGradGuard no_grad;
  const int64_t n = out.size(0);
  if (out.dim() != 2 || out.size(1) != columns() || begin < 0 || n > rows() - begin || out.device() != device())
    throw std::logic_error(cat(numbers_->name, ": rows ", begin, " to ", begin + n, " of ", rows(), " cannot go into ",
                               shape_text(out.sizes().vec()), " on ", out.device().str()));
  if (largest() > largest_of(out.scalar_type()))
    throw NumericError(cat(numbers_->name, ": its weights may be as large as ", largest(), ", expected at most ",
                           largest_of(out.scalar_type()), " for ", at::toString(out.scalar_type()),
                           ": run in bfloat16 or float32"));
  const int64_t step = rows_at_a_time(columns(), device());
  const bool in_place = can_decode_into(*numbers_, out) && columns() % 2 == 0;
  Tensor scratch;
  if (!in_place && n > 0)
    scratch = torch::empty({std::min(step, n), columns()}, torch::TensorOptions(numbers_->type).device(device()));
  for (int64_t done = 0; done < n; done += step) {
    const int64_t some = std::min(step, n - done);
    const Tensor place = out.narrow(0, done, some);
    const Tensor piece = in_place ? place : scratch.narrow(0, 0, some);
    decode_rows(*numbers_, begin + done, piece);
    scale_rows(*numbers_, begin + done, piece);
    if (!in_place) place.copy_(piece);
  }
}

bool PackedMatrix::can_read_rows() const {
  return numbers_->kind == CodeKind::kBlocks && device() == Placement::host();
}

void PackedMatrix::read_rows(int64_t begin, int64_t count, float* rows) const {
  const int64_t row_bytes = numbers_->codes.size(1);
  decode_block_rows(numbers_->block_type, numbers_->codes.const_data_ptr<uint8_t>() + begin * row_bytes,
                    {rows, static_cast<size_t>(count * columns())});
}

int64_t PackedMatrix::scratch_bytes(int64_t rows, int64_t columns, at::Device device) {
  return kScratchOfNumber * columns * std::min(rows, rows_at_a_time(columns, device));
}

}  // namespace lancet
