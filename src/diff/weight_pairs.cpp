#include "weight_pairs.h"

#include <algorithm>
#include <array>
#include <set>

#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

/// Returns the matrix of each expert as a weight of its own.
std::vector<WeightSpec> parts_of(const WeightSpec& whole) {
  const size_t count = whole.stored.tensors.size();
  if (count == 1) return {whole};
  std::vector<WeightSpec> parts;
  for (size_t i = 0; i < count; ++i) {
    WeightSpec part = whole;
    part.name = whole.stored.tensors[i];
    part.stored.tensors = {part.name};
    part.shape[static_cast<size_t>(whole.parts_axis())] /= static_cast<int64_t>(count);
    if (!whole.packed.empty()) part.packed = {whole.packed[i]};
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

ComparedModel::ComparedModel(const std::filesystem::path& folder)
    : checkpoint_(Checkpoint::open(folder)), config_(load_model_config(checkpoint_)) {
  for (const WeightSpec& whole : resolve_weights(config_, checkpoint_)) {
    const std::vector<WeightSpec> parts = parts_of(whole);
    for (size_t i = 0; i < parts.size(); ++i) {
      place_of_.emplace(std::pair(whole.id, i), weights_.size());
      weights_.push_back(parts[i]);
    }
  }
}

const WeightSpec* ComparedModel::find(WeightId id, size_t expert) const {
  const auto found = place_of_.find({id, expert});
  return found == place_of_.end() ? nullptr : &weights_[found->second];
}

std::string ComparedModel::content(const WeightSpec& spec) {
  ContentHash all;
  for (const std::string& name : spec.tensor_names()) {
    std::string& content = content_[name];
    if (content.empty()) {
      const TensorView view = checkpoint_.view(name);
      ContentHash hash;
      hash.add(dtype_name(view.dtype)).add(shape_text(view.shape));
      view.add_to(hash);
      content = hash.hex();
    }
    all.add(content);
  }
  return all.hex();
}

Tensor ComparedModel::read(const WeightSpec& spec, at::Device device) const {
  if (!spec.packed.empty()) return read_unpacked(checkpoint_, spec, device, at::kFloat);
  const TensorView view = checkpoint_.view(spec.stored.tensors.front());
  const std::array reads{TensorRead{view, device, to_scalar_type(view.dtype)}};
  return stored_part(read_tensors(reads, [](int64_t) {}).front(), spec);
}

std::string ComparedModel::type_name(const WeightSpec& spec) const {
  if (!spec.packed.empty()) return config_.quantised->method();
  return std::string(dtype_name(checkpoint_.info(spec.stored.tensors.front()).dtype));
}

std::vector<std::string> ComparedModel::other_tensors() const {
  std::set<std::string> read;
  for (const WeightSpec& spec : weights_)
    for (const std::string& name : spec.tensor_names()) read.insert(name);
  std::vector<std::string> others = checkpoint_.tensor_names();
  std::erase_if(others, [&](const std::string& name) { return read.contains(name); });
  return others;
}

}  // namespace lancet
