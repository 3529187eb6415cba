#include "lancet/models/shared_tensors.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/stored_part.h"

namespace lancet {
namespace {

/// Throws: ConfigError where the weight has no tensors of its own.
void check_shareable(const WeightSpec& spec, const CausalLM& model) {
  if (model.is_quantised(spec.id))
    throw ConfigError(cat(spec.name, ": is kept packed: only a model in full precision can be shared. Save the model ",
                          "and load the folder instead"));
  if (!spec.is_whole() && spec.stored.tensors.size() == 1)
    throw ConfigError(cat(spec.name, ": is a part of ", spec.stored.tensors.front(),
                          ", whose parts have memory of their own here: it cannot be shared. Save the model and load ",
                          "the folder instead"));
}

}  // namespace

std::vector<SharedTensor> shared_tensors(const ModelFiles& files, const CausalLM& model) {
  std::vector<SharedTensor> shared;
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    check_shareable(spec, model);
    const std::vector<Tensor> parts = stored_parts(spec, model.weight(spec.id));
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool is_turned = spec.stored.layout == Layout::kColumns && parts[i].dim() == 2;
      shared.push_back({spec.stored.tensors[i], is_turned ? parts[i].t() : parts[i]});
    }
  }
  return shared;
}

}  // namespace lancet
