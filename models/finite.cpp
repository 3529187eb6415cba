#include "lancet/models/finite.h"

#include <torch/types.h>

#include "lancet/core/strings.h"

namespace lancet {

std::vector<std::string> damaged_weights(const CausalLM& model) {
  const torch::NoGradGuard no_grad;
  std::vector<std::string> names;
  for (const WeightSpec& spec : weight_table(model.config()))  // quantised weights were checked when they were loaded
    if (!model.is_quantised(spec.id) && !model.is_finite(spec.id)) names.push_back(spec.name);
  return names;
}

NumericError not_finite(const CausalLM& model, const std::string& what, const std::string& remedy) {
  const std::vector<std::string> damaged = damaged_weights(model);
  if (damaged.empty()) return NumericError(cat(what, ". ", remedy));
  const std::string more = damaged.size() > 1 ? cat(" and ", damaged.size() - 1, " more of its weights") : "";
  return NumericError(cat(what, ": the model itself is damaged: ", damaged.front(), more,
                          " with NaN or infinity (as loaded in ",
                          dtype_name(to_dtype(model.placement().weight_dtype())),
                          "). Take another copy of the model; where its own type is wider, set run.dtype to that"));
}

std::string wider_dtype(const CausalLM& model) {
  const at::ScalarType dtype = model.placement().weight_dtype();
  if (dtype == at::kDouble) return "Its activations leave every range: is it the model that its config.json describes?";
  return cat("Its activations leave the range of ", dtype_name(to_dtype(dtype)),
             ": set run.dtype: ", dtype == at::kFloat ? "f64" : "f32");
}

}  // namespace lancet
