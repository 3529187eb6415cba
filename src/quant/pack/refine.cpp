#include "refine.h"

#include <torch/types.h>

#include <algorithm>

namespace lancet {
namespace {

/// Columns whose changes later ones hear of one by one; columns beyond hear of them by a product of matrices.
constexpr int64_t kColumnsOfBlock = 32;

/// The row of values that a column has, where there is one for each column or one for all.
Tensor row_of(const Tensor& values, int64_t i) {
  return values.defined() ? values.narrow(0, values.size(0) == 1 ? 0 : i, 1) : Tensor();
}

class Refinement {
 public:
  Refinement(Tensor& codes, const Matrices& matrices, const NumberLine& line, const ScaleGrid& grid,
             const Tensor& importance, double damping)
      : codes_(codes), line_(line), grid_(grid), importance_(importance.to(at::kDouble)) {
    weight_ = matrices.weight.transpose(0, 1);
    diagonal_ = importance_.diagonal().clone();
    damping_ = diagonal_.mean() * damping;
    diagonal_.add_(damping_).masked_fill_(diagonal_.eq(0), 1);
    errors_ = torch::empty(weight_.sizes(), weight_.options().dtype(at::kDouble));
    for_each_block([&](int64_t begin, int64_t n) {
      const LineScales scales = grid_.of_columns(begin, n);
      errors_.narrow(0, begin, n).copy_(given(begin, n) - line_.values(codes_.narrow(0, begin, n), scales));
    });
    slopes_ = importance_.mm(errors_).addcmul_(errors_, damping_);
  }

  void sweep() {
    for_each_block([&](int64_t begin, int64_t n) { refine_block(begin, n); });
  }

 private:
  template <typename Act>
  void for_each_block(const Act& act) const {
    const int64_t columns = codes_.size(0);
    for (int64_t begin = 0; begin < columns;) {
      int64_t end = std::min(columns, begin + kColumnsOfBlock);
      if (grid_.is_by_columns()) end = std::min(end, grid_.group_end(begin));
      act(begin, end - begin);
      begin = end;
    }
  }

  Tensor given(int64_t begin, int64_t n) const { return weight_.narrow(0, begin, n).to(at::kDouble); }

  void refine_block(int64_t begin, int64_t n) {
    const Tensor weight = given(begin, n);
    const Tensor own = importance_.narrow(0, begin, n).narrow(1, begin, n);
    const Tensor slopes = slopes_.narrow(0, begin, n).clone();
    const Tensor errors = errors_.narrow(0, begin, n), diagonal = diagonal_.narrow(0, begin, n);
    const Tensor changes = torch::empty_like(errors);
    const LineScales scales = grid_.of_columns(begin, n);
    for (int64_t i = 0; i < n; ++i) {
      Tensor slope = slopes.select(0, i);
      if (i > 0) slope.addmv_(changes.narrow(0, 0, i).transpose(0, 1), own.select(0, i).narrow(0, 0, i));
      const Tensor now = weight.select(0, i) - errors.select(0, i);
      // where the column's error would leave no slope
      const Tensor wanted = now + slope / diagonal.select(0, i);
      const LineScales at{row_of(scales.scales, i), row_of(scales.zeros, i)};
      const Tensor codes = line_.codes(wanted.to(at::kFloat).unsqueeze(0), at);
      const Tensor values = line_.values(codes, at).squeeze(0).to(at::kDouble);
      // codes that readers' arithmetic makes one number stay
      const Tensor is_nearer = (values - wanted).abs().lt((now - wanted).abs());
      Tensor own_codes = codes_.select(0, begin + i);
      own_codes.copy_(torch::where(is_nearer, codes.squeeze(0), own_codes));
      changes.select(0, i).copy_(torch::where(is_nearer, now - values, 0));
    }
    errors.add_(changes);
    slopes_.addmm_(importance_.narrow(1, begin, n), changes);
    slopes_.narrow(0, begin, n).addcmul_(changes, damping_);
  }

  Tensor& codes_;
  const NumberLine& line_;
  const ScaleGrid& grid_;
  Tensor importance_, weight_;  // H [in, in]; the weight [in, out]
  Tensor diagonal_, damping_;   // of H, damped; what was added
  Tensor errors_, slopes_;      // [in, out]: E^T and (H + damping I) E^T
};

}  // namespace

void refine_codes(Tensor& codes, const Matrices& matrices, const NumberLine& line, const ScaleGrid& grid,
                  const Tensor& importance, double damping, int64_t sweeps) {
  if (sweeps == 0) return;
  Refinement refinement(codes, matrices, line, grid, importance, damping);
  for (int64_t i = 0; i < sweeps; ++i) refinement.sweep();
}

}  // namespace lancet
