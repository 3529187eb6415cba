// Values kept at the norm that they have on the unedited model: stops long streams of edits from driving values and
// weights up in turn. Source: norm-anchor scaling (arXiv 2602.02543).
#pragma once

#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/deltas/editor_state.h"
#include "lancet/spec/layered_spec.h"

namespace lancet {

struct NormAnchor {
  enum class Mode {
    kOff,
    kRescale,  ///< every value gets the anchor's norm, but for those above the limit, which are left out
    kSkip      ///< values above the limit are left out, the others stay as they are
  };
  Mode mode = Mode::kOff;
  double limit = *NormAnchorSpec::kLimit.fallback;  ///< times the anchor
};

/// `norm_anchor: {mode, limit}` of an editor.
NormAnchor parse_norm_anchor(ConfigSection& editor);

/// The norm of each row of `z_ND`, f64.
Tensor value_norms(const Tensor& z_ND);

/// The mean of `norm_N` (value_norms(), on the host) becomes the anchor of values at `layer`, unless the state has one.
void keep_anchor(EditorState& state, int64_t layer, const Tensor& norm_N);
bool has_anchor(const EditorState& state, int64_t layer);
double anchor_norm(const EditorState& state, int64_t layer);

/// Rescales `z_ND`, whose norms are `norm_N`, in place as the mode says: `norm` is the anchor's. Returns for each row
/// why it is left out, or nothing.
std::vector<std::string> apply_anchor(const NormAnchor& anchor, double norm, const Tensor& norm_N, Tensor& z_ND);

}  // namespace lancet
