// Codes to numbers, with a few kernels for as many rows as are taken at a time.
#include <torch/types.h>

#include <limits>
#include <stdexcept>

#include "blocks.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/devices.h"
#include "packed_numbers.h"
#include "words.h"

namespace lancet {
namespace {

constexpr int64_t kHostNumbers = int64_t{1} << 18;
constexpr int64_t kDeviceNumbers = int64_t{1} << 23;

/// The type of integers that hold two of `type`.
at::ScalarType pair_type(at::ScalarType type) { return type == at::kFloat ? at::kLong : at::kInt; }

/// `out` is [n, columns], and codes of `bits` bits, 4 or 8 to a plane, lie in 1 or 3 bytes.
void decode_planes(const PackedNumbers& numbers, const Tensor& codes, const Tensor& out) {
  const int64_t bytes = numbers.bits == 3 ? 3 : 1, count = 8 * bytes / numbers.bits;
  const Tensor words = joined_bytes(codes, bytes);
  const int64_t mask = (int64_t{1} << numbers.bits) - 1;
  const Tensor places = out.unflatten(1, {-1, count});
  for (int64_t i = 0; i < count; ++i)
    places.select(2, i).copy_(words.bitwise_right_shift(i * numbers.bits).bitwise_and_(mask));
}

}  // namespace

int64_t rows_at_a_time(int64_t columns, at::Device device) {
  const int64_t most = device == Placement::host() ? kHostNumbers : kDeviceNumbers;
  return std::max<int64_t>(1, most / std::max<int64_t>(1, columns));
}

bool can_decode_into(const PackedNumbers& numbers, const Tensor& out) {
  return out.scalar_type() == numbers.type && out.is_contiguous() && out.storage_offset() % 2 == 0;
}

double largest_of(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return std::numeric_limits<at::Half>::max();
    case at::kBFloat16:
      return std::numeric_limits<at::BFloat16>::max();
    case at::kFloat:
      return std::numeric_limits<float>::max();
    case at::kDouble:
      return std::numeric_limits<double>::max();
    default:
      throw std::logic_error(cat("a matrix cannot be unpacked to ", at::toString(type)));
  }
}

void decode_rows(const PackedNumbers& numbers, int64_t begin, const Tensor& out) {
  const Tensor codes = numbers.codes.narrow(0, begin, out.size(0));
  switch (numbers.kind) {
    case CodeKind::kPairs: {
      Tensor pairs = out.view(pair_type(numbers.type));
      at::take_out(pairs, numbers.pairs, codes.to(at::kLong));
      return;
    }
    case CodeKind::kPlanes:
      decode_planes(numbers, codes, out);
      break;
    case CodeKind::kBytes:
      out.copy_(codes);
      break;
    case CodeKind::kBlocks:
      decode_blocks(numbers.block_type, codes, out);
      return;
  }
  if (numbers.zero != 0) out.sub_(numbers.zero);
}

}  // namespace lancet
