// Values kept at the norm that they have on the unedited model: stops long streams of edits from driving values and
// weights up in turn. Source: norm-anchor scaling (arXiv 2602.02543).
#pragma once

#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/edit/editor_state.h"

namespace lancet {

struct NormAnchor {
  enum class Mode {
    kOff,
    kRescale,  ///< every value gets the anchor's norm, but for those above the limit, which are left out
    kSkip      ///< values above the limit are left out, the others stay as they are
  };
  Mode mode = Mode::kOff;
  double limit = 2.0;  ///< times the anchor
};

/// `norm_anchor: {mode, limit}` of an editor.
NormAnchor parse_norm_anchor(ConfigSection& editor);

/// The mean norm of `z_ND` becomes the anchor of values at `layer`, unless the state has one.
void keep_anchor(EditorState& state, int64_t layer, const Tensor& z_ND);
bool has_anchor(const EditorState& state, int64_t layer);

/// Rescales `z_ND` in place as the mode says. Returns for each row why it is left out, or nothing.
std::vector<std::string> apply_anchor(const NormAnchor& anchor, const EditorState& state, int64_t layer, Tensor& z_ND);

}  // namespace lancet
