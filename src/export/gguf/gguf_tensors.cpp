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

/// The shape of a part of latent attention's matrix [heads * (plain part + value), rank].
std::vector<int64_t> shape_of_part(const std::vector<int64_t>& whole, const GgufPlaceOf& place) {
  const int64_t heads = place.heads.queries, rank = whole[1];
  if (place.part == GgufPart::kLatentKeys) return {heads, rank, place.plain_dim};
  return {heads, whole[0] / heads - place.plain_dim, rank};
}

Tensor latent_part(const Tensor& whole, const GgufPlaceOf& place) {
  const Tensor heads = whole.unflatten(0, {place.heads.queries, -1});
  if (place.part == GgufPart::kLatentKeys) return heads.narrow(1, 0, place.plain_dim).transpose(1, 2).contiguous();
  return heads.narrow(1, place.plain_dim, heads.size(1) - place.plain_dim).contiguous();
}

/// Rows and numbers as the file has them.
Tensor changed(const Tensor& part, const GgufPlaceOf& place) {
  if (place.part != GgufPart::kWhole) return latent_part(part, place);
  if (place.change == GgufChange::kLessOne) return part + 1;
  if (place.change == GgufChange::kLogDecay) return -part.exp();
  if (place.change == GgufChange::kTransposed) return part.t().contiguous();
  return rows_of_file(part, place.change, place.heads);
}

}  // namespace

GgufTensors::GgufTensors(const ModelFiles& files, const GgufLayout& layout, GgufMatrixType type)
    : own_(files, TensorsForm::kGguf), matrix_type_(matrix_type_of(type, files.config.dtype)) {
  for (size_t i = 0; i < own_.groups().size(); ++i) {
    const OwnGroup& group = own_.groups()[i];
    std::vector<Source> sources;
    for (const OwnTensor& tensor : group.tensors) {
      const std::vector<GgufPlaceOf> places = layout.places_of(tensor.name);
      sources.resize(places.size(), {.group = i, .places = {}});
      for (size_t part = 0; part < places.size(); ++part) sources[part].places.push_back(places[part]);
    }
    for (Source& source : sources) {
      described_.push_back(describe(group, source.places));
      sources_.push_back(std::move(source));
    }
  }
}

GgufNewTensor GgufTensors::describe(const OwnGroup& group, const std::vector<GgufPlaceOf>& places) const {
  const GgufPlaceOf& first = places.front();
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].tensor != first.tensor || (places.size() > 1 && places[i].expert != static_cast<int64_t>(i)))
      throw std::logic_error(cat(group.tensors[i].name, ": lies where another weight does: ", places[i].tensor));
  GgufNewTensor made{.name = first.tensor, .type = find_gguf_type("F32"), .shape = group.tensors.front().shape};
  if (first.is_flat) made.shape.erase(std::ranges::find(made.shape, 1));
  if (first.part != GgufPart::kWhole) made.shape = shape_of_part(made.shape, first);
  if (first.change == GgufChange::kTransposed) std::ranges::reverse(made.shape);
  if (made.shape.size() > 1 && !first.is_kept)
    made.type = made.shape.back() % matrix_type_->block_numbers == 0 ? matrix_type_ : find_gguf_type("F16");
  if (first.expert >= 0) made.shape.insert(made.shape.begin(), std::ssize(places));
  return made;
}

std::vector<Tensor> GgufTensors::encoded(size_t tensor) const {
  const torch::NoGradGuard no_grad;
  const Source& source = sources_[tensor];
  const OwnGroup& group = own_.groups()[source.group];
  const std::vector<Tensor> own = own_.read(group, at::kFloat);
  const int64_t columns = described_[tensor].shape.back();
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < own.size(); ++i)
    pieces.push_back(encode_blocks(changed(own[i], source.places[i]).reshape({-1, columns}), *described_[tensor].type,
                                   group.tensors[i].name));
  return pieces;
}

}  // namespace lancet
