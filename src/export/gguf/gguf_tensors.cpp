#include "gguf_tensors.h"

#include <torch/types.h>

#include <algorithm>
#include <stdexcept>

#include "lancet/core/strings.h"
#include "lancet/quant/gguf_blocks.h"
#include "rows_of_file.h"

namespace lancet {
namespace {

const GgufType* matrix_type_of(GgufMatrixType asked, DType own) {
  if (asked != GgufMatrixType::kAuto) return find_gguf_type(gguf_matrix_type_name(asked));
  return find_gguf_type(own == DType::kBF16 ? "BF16" : own == DType::kF16 ? "F16" : "F32");
}

/// Rows and numbers as the file has them.
Tensor changed(const Tensor& part, const GgufPlaceOf& place) {
  if (place.change == GgufChange::kLessOne) return part + 1;
  return rows_of_file(part, place.change, place.heads);
}

}  // namespace

GgufTensors::GgufTensors(const ModelFiles& files, const GgufLayout& layout, GgufMatrixType type)
    : own_(files), matrix_type_(matrix_type_of(type, files.config.dtype)) {
  for (const OwnGroup& group : own_.groups()) {
    std::vector<GgufPlaceOf>& places = places_.emplace_back();
    for (const OwnTensor& tensor : group.tensors) places.push_back(layout.place_of(tensor.name));
    described_.push_back(describe(group, places));
  }
}

GgufNewTensor GgufTensors::describe(const OwnGroup& group, const std::vector<GgufPlaceOf>& places) const {
  const GgufPlaceOf& first = places.front();
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].tensor != first.tensor || (places.size() > 1 && places[i].expert != static_cast<int64_t>(i)))
      throw std::logic_error(cat(group.tensors[i].name, ": lies where another weight does: ", places[i].tensor));
  GgufNewTensor made{.name = first.tensor, .type = find_gguf_type("F32"), .shape = group.tensors.front().shape};
  if (first.is_flat) made.shape.erase(made.shape.begin());
  if (made.shape.size() > 1 && !first.is_kept)
    made.type = made.shape.back() % matrix_type_->block_numbers == 0 ? matrix_type_ : find_gguf_type("F16");
  if (first.expert >= 0) made.shape.insert(made.shape.begin(), std::ssize(places));
  return made;
}

std::vector<Tensor> GgufTensors::encoded(size_t tensor) const {
  const torch::NoGradGuard no_grad;
  const OwnGroup& group = own_.groups()[tensor];
  const std::vector<Tensor> own = own_.read(group, at::kFloat);
  const int64_t columns = described_[tensor].shape.back();
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < own.size(); ++i)
    pieces.push_back(encode_blocks(changed(own[i], places_[tensor][i]).reshape({-1, columns}), *described_[tensor].type,
                                   group.tensors[i].name));
  return pieces;
}

}  // namespace lancet
