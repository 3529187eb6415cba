// Numbers times their scales: of rows and columns, of blocks of both, or of blocks of the flattened matrix.
#include <torch/types.h>

#include "packed_numbers.h"

namespace lancet {
namespace {

using Apply = void (*)(const Tensor& numbers, const Tensor& values);

void subtract_values(const Tensor& numbers, const Tensor& values) { numbers.sub_(values); }
void multiply_values(const Tensor& numbers, const Tensor& values) { numbers.mul_(values); }

/// Elements of a list, each of which counts for `repeat` neighbours, for the neighbours `begin` ... `begin + size`.
Tensor repeated(const Tensor& values, int64_t repeat, int64_t begin, int64_t size) {
  const int64_t first = begin / repeat, last = (begin + size - 1) / repeat;
  return values.narrow(0, first, last - first + 1).repeat_interleave(repeat, 0).narrow(0, begin - first * repeat, size);
}

/// [n or 1, scale columns] of rows `begin` ... `begin + n`.
Tensor values_of_rows(const Tensor& values, int64_t block_rows, int64_t begin, int64_t n) {
  if (block_rows == 0) return values;
  return block_rows == 1 ? values.narrow(0, begin, n) : repeated(values, block_rows, begin, n);
}

/// `numbers` [n, columns] with the values of their groups of columns, [n or 1, groups].
void apply_groups(const Tensor& numbers, const Tensor& values, int64_t group, Apply apply) {
  if (values.size(1) == 1) return apply(numbers, values);
  const int64_t whole = numbers.size(1) / group, rest = numbers.size(1) % group;
  apply(numbers.narrow(1, 0, whole * group).unflatten(1, {whole, group}), values.narrow(1, 0, whole).unsqueeze(2));
  if (rest > 0) apply(numbers.narrow(1, whole * group, rest), values.narrow(1, whole, 1));
}

/// The grid's values, or zero points, of rows from `begin` on.
void apply_grid(const PackedNumbers& numbers, const Tensor& grid, int64_t begin, const Tensor& out, Apply apply) {
  const Tensor values = values_of_rows(grid, numbers.block.rows, begin, out.size(0)).to(out.scalar_type());
  if (numbers.order.defined()) {
    const int64_t rows = out.size(0);  // gather is several times faster here than index_select
    return apply(out, values.expand({rows, -1}).gather(1, numbers.order.expand({rows, -1})));
  }
  apply_groups(out, values, numbers.block.columns, apply);
}

/// Scales `begin` ... `begin + size` of the list.
Tensor flat_scales(const PackedNumbers& numbers, int64_t begin, int64_t size) {
  const Tensor scales = numbers.scales.narrow(0, begin, size);
  const NestedScales& nested = numbers.nested;
  if (!nested.table.defined()) return scales;
  return nested.table.index_select(0, scales.to(at::kInt))
      .mul_(repeated(nested.scales, nested.block_size, begin, size))
      .add_(nested.offset);
}

void multiply_flat(const PackedNumbers& numbers, int64_t begin_row, const Tensor& out) {
  const int64_t block = numbers.flat_block, rows = out.size(0), columns = numbers.columns;
  const int64_t begin = begin_row * columns, end = begin + rows * columns;
  const int64_t first = begin / block, last = (end - 1) / block;
  const Tensor scales = flat_scales(numbers, first, last - first + 1);
  if (columns % block == 0) return apply_groups(out, scales.view({rows, columns / block}), block, multiply_values);
  multiply_values(out, repeated(scales, block, begin - first * block, end - begin).view({rows, columns}));
}

}  // namespace

void scale_rows(const PackedNumbers& numbers, int64_t begin, const Tensor& out) {
  if (numbers.kind == CodeKind::kBlocks) return;  // blocks have scales of their own
  if (numbers.zeros.defined()) apply_grid(numbers, numbers.zeros, begin, out, subtract_values);
  if (numbers.flat_block > 0)
    multiply_flat(numbers, begin, out);
  else
    apply_grid(numbers, numbers.scales, begin, out, multiply_values);
  if (numbers.factor != 1) out.mul_(numbers.factor);
}

}  // namespace lancet
