#include "own_tensors.h"

#include <torch/types.h>

#include <algorithm>
#include <map>

#include "lancet/models/stored_part.h"
#include "value_heads.h"

namespace lancet {
namespace {

std::vector<WeightSpec> own_table(const ModelFiles& files, TensorsForm form) {
  ModelConfig config = files.config;
  // what config.json alone says is the form of the class; the files may have another one
  config.experts.in_one_tensor =
      form == TensorsForm::kClass &&
      parse_model_config(files.checkpoint.config_text(), "", {}, files.checkpoint.folder().string())
          .experts.in_one_tensor;
  config.latent.is_split = false;
  return weight_table(config);
}

}  // namespace

OwnTensors::OwnTensors(const ModelFiles& files, TensorsForm form)
    : files_(files),
      form_(form),
      own_(own_table(files, form)),
      stored_(resolve_weights(files.config, files.checkpoint)) {
  std::map<std::string, size_t> group_of;
  for (size_t i = 0; i < own_.size(); ++i) {
    const StoredPlace& place = own_[i].stored;
    const auto known = group_of.find(place.tensors.front());
    const size_t at = known == group_of.end() ? groups_.size() : known->second;
    if (at == groups_.size()) groups_.emplace_back();
    groups_[at].weights.push_back(i);
    for (const std::string& name : place.tensors)
      if (group_of.emplace(name, at).second) groups_[at].tensors.push_back({name, place.shape});
  }
}

std::vector<Tensor> OwnTensors::read(const OwnGroup& group, at::ScalarType type) const {
  const torch::NoGradGuard no_grad;
  std::map<std::string, Tensor> filled;
  for (const OwnTensor& tensor : group.tensors) filled[tensor.name] = torch::empty(tensor.shape, type);
  for (const size_t i : group.weights) {
    const Tensor stored = read_stored(files_.checkpoint, stored_[i], type).to(type);
    const Tensor weight =
        with_value_heads(stored, own_[i].id.kind, files_.config.recurrence, form_ == TensorsForm::kGguf);
    const std::vector<Tensor> parts = stored_parts(own_[i], weight);
    for (size_t k = 0; k < parts.size(); ++k) put_stored_part(filled.at(own_[i].stored.tensors[k]), own_[i], parts[k]);
  }
  std::vector<Tensor> tensors;
  for (const OwnTensor& tensor : group.tensors) tensors.push_back(filled.at(tensor.name));
  return tensors;
}

}  // namespace lancet
