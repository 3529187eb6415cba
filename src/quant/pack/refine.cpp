#include "refine.h"

#include <torch/types.h>

#include <algorithm>

namespace lancet {
namespace {

/// Columns whose changes later ones hear of one by one; columns beyond hear of them by a product of matrices.
constexpr int64_t kColumnsOfBlock = 32;

class Refinement {
 public:
  Refinement(RoundedColumns& rounded, const Matrices& matrices, const NumberLine& line, const ScaleGrid& grid,
             const Tensor& importance, double damping)
      : codes_(rounded.codes),
        errors_(rounded.errors),
        line_(line),
        grid_(grid),
        importance_(importance.to(at::kDouble)),
        weight_(matrices.weight.transpose(0, 1)) {
    diagonal_ = importance_.diagonal().clone();
    damping_ = diagonal_.mean() * damping;
    diagonal_.add_(damping_).masked_fill_(diagonal_.eq(0), 1);
    slopes_ = importance_.mm(errors_).addcmul_(errors_, damping_);
  }

  void sweep() {
    const int64_t columns = codes_.size(0);
    for (int64_t begin = 0; begin < columns;) {
      int64_t end = std::min(columns, begin + kColumnsOfBlock);
      if (grid_.is_by_columns()) end = std::min(end, grid_.group_end(begin));
      refine_block(begin, end - begin);
      begin = end;
    }
  }

 private:
  void refine_block(int64_t begin, int64_t n) {
    const Tensor weight = weight_.narrow(0, begin, n).to(at::kDouble);
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
      const LineScales at = scales.of_column(i);
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

  Tensor codes_, errors_;  // as they were given, changed in place
  const NumberLine& line_;
  const ScaleGrid& grid_;
  Tensor importance_, weight_;  // H [in, in]; the weight [in, out]
  Tensor diagonal_, damping_;   // of H, damped; what was added
  Tensor slopes_;               // [in, out]: (H + damping I) E^T
};

}  // namespace

void refine_codes(RoundedColumns& rounded, const Matrices& matrices, const NumberLine& line, const ScaleGrid& grid,
                  const Tensor& importance, const PackOptions& options) {
  if (options.sweeps == 0) return;
  Refinement refinement(rounded, matrices, line, grid, importance, options.damping);
  for (int64_t i = 0; i < options.sweeps; ++i) refinement.sweep();
}

}  // namespace lancet
