#include "lancet/editor_parts/norm_anchor.h"

#include <torch/types.h>

#include "lancet/core/strings.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

std::string state_name(int64_t layer) { return cat("norm_anchor.", layer); }

}  // namespace

NormAnchor parse_norm_anchor(ConfigSection& editor) {
  ConfigSection section = editor.section(LayeredSpec::kNormAnchor.key);
  NormAnchor anchor;
  anchor.mode = read<NormAnchor::Mode>(section, NormAnchorSpec::kMode);
  anchor.limit = read(section, NormAnchorSpec::kLimit);
  section.finish();
  return anchor;
}

bool has_anchor(const EditorState& state, int64_t layer) { return state.tensors.contains(state_name(layer)); }

double anchor_norm(const EditorState& state, int64_t layer) {
  return state.tensors.at(state_name(layer)).item<double>();
}

Tensor value_norms(const Tensor& z_ND) { return z_ND.norm(2, 1).to(torch::kDouble); }

void keep_anchor(EditorState& state, int64_t layer, const Tensor& norm_N) {
  state.tensors.emplace(state_name(layer), torch::tensor(norm_N.mean().item<double>(), torch::kDouble));
}

std::vector<std::string> apply_anchor(const NormAnchor& anchor, double norm, const Tensor& norm_N, Tensor& z_ND) {
  std::vector<std::string> left_out(static_cast<size_t>(z_ND.size(0)));
  for (int64_t i = 0; i < z_ND.size(0); ++i)
    if (const double own = norm_N[i].item<double>(); own > anchor.limit * norm)
      left_out[static_cast<size_t>(i)] = cat("its value's norm is ", own, ", more than ", anchor.limit,
                                             " times the unedited model's ", norm, " (editor.norm_anchor.limit)");
  if (anchor.mode == NormAnchor::Mode::kRescale)
    z_ND = z_ND * (norm / norm_N).unsqueeze(1).to(z_ND.device(), z_ND.scalar_type());
  return left_out;
}

}  // namespace lancet
