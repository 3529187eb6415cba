#include "sweep.h"

#include <torch/types.h>

#include <algorithm>

#include "numbers/packed_numbers.h"

namespace lancet {
namespace {

/// Columns that are rounded one after another before later ones hear of it by a product of matrices.
constexpr int64_t kColumnsOfLeaf = 32;

Tensor codes_like(const Tensor& weight) {
  return torch::empty({weight.size(1), weight.size(0)}, weight.options().dtype(at::kByte));
}

/// Halves ranges of columns: when a range's left half is done, its errors go into the right half at once. So each range
/// has, when its turn comes, the errors of all columns before it, and most of the work is large products.
class FeedbackSweep {
 public:
  FeedbackSweep(const Matrices& matrices, const NumberLine& line, ScaleGrid& grid, const Tensor& factor)
      : matrices_(matrices),
        line_(line),
        grid_(grid),
        factor_(factor),
        codes_(codes_like(matrices.weight)),
        columns_(matrices.weight.transpose(0, 1).to(at::kDouble).clone(at::MemoryFormat::Contiguous)) {}

  RoundedColumns run() {
    grid_.prepare(matrices_.weight, matrices_.before);
    round_range(0, codes_.size(0));
    return {codes_, columns_};
  }

 private:
  void round_range(int64_t begin, int64_t end) {
    const int64_t first_end = grid_.group_end(begin);
    if (grid_.is_by_columns() && end == first_end && begin == grid_.group_begin(begin))
      grid_.find(begin,
                 {expected(begin, end).to(at::kFloat).contiguous(), columns_of(matrices_.before, begin, end - begin)});
    const bool has_groups = grid_.is_by_columns() && end > first_end;
    if (!has_groups && end - begin <= kColumnsOfLeaf) return round_leaf(begin, end);
    int64_t middle = (begin + end) / 2;
    if (has_groups) middle = std::max(first_end, grid_.group_begin(middle));
    round_range(begin, middle);
    columns_.narrow(0, middle, end - middle)
        .addmm_(factor_.narrow(0, begin, middle - begin).narrow(1, middle, end - middle).transpose(0, 1),
                columns_.narrow(0, begin, middle - begin));
    round_range(middle, end);
  }

  /// [n, out] f64 of the weight as it was given.
  Tensor given(int64_t begin, int64_t end) const {
    return matrices_.weight.narrow(1, begin, end - begin).transpose(0, 1).to(at::kDouble).contiguous();
  }

  /// A group's columns as they would become if none of them were rounded, each with the errors of all before it. That
  /// is what GPTQ has of them at that time, and what scales are found of.
  Tensor expected(int64_t begin, int64_t end) const {
    const int64_t n = end - begin;
    const Tensor columns = columns_.narrow(0, begin, n);
    if (begin == 0) return columns;
    const Tensor weight = given(begin, end);
    const Tensor lower = factor_.narrow(0, begin, n).narrow(1, begin, n).transpose(0, 1);
    return at::linalg_solve_triangular(lower, columns - weight, /*upper=*/false, /*left=*/true, /*unitriangular=*/true)
        .add_(weight);
  }

  void round_leaf(int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    const Tensor weight = given(begin, end);
    const Tensor factor = factor_.narrow(0, begin, n).narrow(1, begin, n).transpose(0, 1).contiguous();
    const Tensor errors = columns_.narrow(0, begin, n);
    const LineScales scales = grid_.of_columns(begin, n);
    for (int64_t i = 0; i < n; ++i) {
      Tensor column = errors.select(0, i);
      if (i > 0) column.addmv_(errors.narrow(0, 0, i).transpose(0, 1), factor.select(0, i).narrow(0, 0, i));
      const LineScales at = scales.of_column(i);
      const Tensor codes = line_.codes(column.to(at::kFloat).unsqueeze(0), at);
      codes_.narrow(0, begin + i, 1).copy_(codes);
      at::sub_out(column, weight.select(0, i), line_.values(codes, at).squeeze(0));
    }
  }

  const Matrices& matrices_;
  const NumberLine& line_;
  ScaleGrid& grid_;
  const Tensor& factor_;
  Tensor codes_;
  Tensor columns_;  // [in, out]: as changed by the errors before them; after their turn, their own errors
};

}  // namespace

Tensor round_columns(const Matrices& matrices, const NumberLine& line, ScaleGrid& grid) {
  const Tensor& weight = matrices.weight;
  const int64_t columns = weight.size(1), step = rows_at_a_time(weight.size(0), weight.device());
  Tensor codes = codes_like(weight);
  grid.prepare(weight, matrices.before);
  for (int64_t begin = 0; begin < columns;) {
    const int64_t end = grid.is_by_columns() ? grid.group_end(begin) : std::min(columns, begin + step);
    const Tensor numbers = columns_of(weight, begin, end - begin);
    if (grid.is_by_columns()) grid.find(begin, {numbers, columns_of(matrices.before, begin, end - begin)});
    for (int64_t column = begin; column < end; column += step) {
      const int64_t n = std::min(step, end - column);
      codes.narrow(0, column, n).copy_(line.codes(numbers.narrow(0, column - begin, n), grid.of_columns(column, n)));
    }
    begin = end;
  }
  return codes;
}

RoundedColumns round_with_feedback(const Matrices& matrices, const NumberLine& line, ScaleGrid& grid,
                                   const Tensor& factor) {
  return FeedbackSweep(matrices, line, grid, factor).run();
}

}  // namespace lancet
