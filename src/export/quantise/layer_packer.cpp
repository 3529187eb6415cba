#include "layer_packer.h"

#include <torch/types.h>

#include <array>

#include "forms/weighted_error.h"
#include "lancet/core/strings.h"
#include "lancet/models/stored_part.h"
#include "lancet/models/tensor_io.h"
#include "lancet/quant/packed_matrix.h"
#include "lancet/runtime/devices.h"

namespace lancet {

void LayerPacker::pack_layer(int64_t layer, LayerMoments& moments, const LayerKeys* keys) {
  const torch::NoGradGuard no_grad;
  std::map<std::string, Tensor> read;
  std::map<std::pair<MatrixInput, int64_t>, Scale> scales;  // matrices of one input share it
  for (const PlannedMatrix& matrix : plan_.matrices) {
    if (matrix.layer != layer) continue;
    const auto [found, is_new] = scales.try_emplace({matrix.input, matrix.expert});
    Scale& scale = found->second;
    if (is_new) {
      scale.importance = moments.take(matrix.input, matrix.expert);
      if (keys != nullptr) {
        scale.keys = keys->keys(matrix.input, matrix.expert);
        scale.importance = with_keys(std::move(scale.importance), covariance_weight_, scale.keys);
      }
    }
    read[matrix.name] = packed_and_read(matrix, scale);
  }
  put_into_model(layer, read);
}

Tensor LayerPacker::read(const PlannedMatrix& matrix) const {
  const TensorView stored = view_of(files_.checkpoint, matrix.from);
  const at::ScalarType type = stored.dtype == DType::kF64 ? torch::kDouble : torch::kFloat;
  const std::array reads{TensorRead{stored, model_.placement().solve_device(matrix.layer), type}};
  const Tensor tensor = read_tensors(reads, [](int64_t) {}).front();
  return matrix.is_turned ? tensor.t().contiguous() : tensor;
}

Tensor LayerPacker::packed_and_read(const PlannedMatrix& matrix, const Scale& scale) {
  const Tensor weight = read(matrix);
  // An expert that no token went to: nothing is known of what matters.
  const bool is_known = scale.importance.diagonal().sum().item<double>() > 0;
  const auto packed_by = [&](const Tensor& importance) { return pack(weight, matrix.code, matrix.name, importance); };
  const auto values = [&](const NewlyPacked& packed, at::ScalarType type) {
    return PackedMatrix::assemble(packed.spec, packed.parts).unpack(type);
  };
  const Tensor exact = weight.to(torch::kDouble);
  const Tensor all = weighted_square(exact, scale.importance);
  const auto error_of = [&](const Tensor& error) {
    return root_of_share(weighted_square(error, scale.importance), all);
  };
  const bool has_keys = scale.keys.defined() && scale.keys.size(1) > 0;
  const auto residual_of = [&](const Tensor& error) -> std::optional<double> {
    if (!has_keys) return std::nullopt;
    return root_of_share(error.mm(scale.keys).square().sum(), exact.mm(scale.keys).square().sum());
  };

  QuantisedMatrix loss{.name = matrix.name};
  NewlyPacked packed = packed_by({});
  Tensor error = values(packed, torch::kDouble).sub_(exact);
  loss.nearest_error = error_of(error);
  loss.nearest_residual = residual_of(error);
  if (is_known) {
    error.reset();
    packed = packed_by(scale.importance);
    error = values(packed, torch::kDouble).sub_(exact);
  }
  loss.error = error_of(error);
  loss.residual = residual_of(error);
  losses_.push_back(std::move(loss));

  Tensor result = values(packed, model_.placement().weight_dtype());
  for (Tensor& part : packed.parts) part = part.to(Placement::host()).contiguous();
  packed_.insert_or_assign(matrix.name, std::move(packed));
  return result;
}

void LayerPacker::put_into_model(int64_t layer, const std::map<std::string, Tensor>& read) {
  for (const WeightSpec& spec : plan_.weights) {
    if (spec.id.layer != layer) continue;
    std::vector<Tensor> parts;
    for (const std::string& name : spec.stored.tensors) parts.push_back(read.at(name));
    const Tensor whole = parts.size() == 1 ? stored_part(parts.front(), spec) : torch::cat(parts, spec.parts_axis());
    model_.set_weight(spec.id, whole.contiguous());
  }
}

std::vector<TensorExchange> LayerPacker::exchanges() const {
  std::map<std::string, TensorExchange> exchanges;  // by the model's tensor, which may have several of the output's
  const auto added_of = [&](const StoredRows& from) -> std::vector<TensorSource>& {
    const auto [found, is_new] = exchanges.try_emplace(from.tensor);
    if (is_new) found->second.removed = {from.tensor};
    return found->second.added;
  };
  for (const PlannedMatrix& matrix : plan_.matrices) {
    const NewlyPacked& packed = packed_.at(matrix.name);
    for (size_t i = 0; i < packed.parts.size(); ++i)
      added_of(matrix.from).push_back(to_source(packed.spec.parts[i].tensor, packed.parts[i]));
  }
  for (const PlainMatrix& matrix : plan_.apart) {
    const TensorView view = view_of(files_.checkpoint, matrix.from);
    added_of(matrix.from).push_back({matrix.name, view.dtype, view.shape, view.bytes});
  }
  std::vector<TensorExchange> all;
  for (auto& [tensor, exchange] : exchanges) all.push_back(std::move(exchange));
  return all;
}

}  // namespace lancet
