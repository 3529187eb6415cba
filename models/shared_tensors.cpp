#include "lancet/models/shared_tensors.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/stored_part.h"

namespace lancet {
namespace {

/// Throws: ConfigError if the weight has no tensors of its own.
void check_shareable(const WeightSpec& spec, const CausalLM& model) {
  if (model.is_quantised(spec.id))
    throw ConfigError(cat(spec.name, ": is kept packed: only a model in full precision can be shared. Save the model ",
                          "and load the folder instead"));
  if (spec.stored.layout == Layout::kLatentParts)
    throw ConfigError(cat(spec.name, ": has another form in the file than in memory: it cannot be shared. Save the ",
                          "model and load the folder instead"));
  if (!spec.is_whole() && spec.stored.tensors.size() == 1)
    throw ConfigError(cat(spec.name, ": is a part of ", spec.stored.tensors.front(),
                          ", whose parts have memory of their own here: it cannot be shared. Save the model and load ",
                          "the folder instead"));
}

/// Returns a view of the weight, or of its part of one tensor, in that tensor's shape.
Tensor as_stored(const WeightSpec& spec, const Tensor& part) {
  if (part.dim() == 1) return part.view(spec.stored.shape);
  if (spec.stored.layout == Layout::kColumns) return part.t();
  const auto by_expert = [&] { return part.unflatten(1, {spec.experts, -1}); };  // [out, experts, in]
  if (spec.stored.layout == Layout::kByExpert) return by_expert().transpose(0, 1);
  if (spec.stored.layout == Layout::kByExpertColumns) return by_expert().permute({1, 2, 0});
  return part;
}

}  // namespace

std::vector<SharedTensor> shared_tensors(const ModelFiles& files, const CausalLM& model) {
  std::vector<SharedTensor> shared;
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    check_shareable(spec, model);
    const std::vector<Tensor> parts = stored_parts(spec, model.weight(spec.id));
    for (size_t i = 0; i < parts.size(); ++i) shared.push_back({spec.stored.tensors[i], as_stored(spec, parts[i])});
  }
  return shared;
}

}  // namespace lancet
