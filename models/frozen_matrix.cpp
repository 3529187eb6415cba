#include "lancet/models/frozen_matrix.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <algorithm>

#include "lancet/core/hash.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// What autograd holds of a product: no number of the matrix.
struct HeldRows : torch::CustomClassHolder {
  HeldRows(FrozenRows held, Tensor added) : rows(std::move(held)), bias(std::move(added)) {}
  FrozenRows rows;
  Tensor bias;  ///< may be undefined, which autograd takes for no argument
};

struct FrozenLinear : torch::autograd::Function<FrozenLinear> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        const c10::intrusive_ptr<HeldRows>& held) {
    context->saved_data["rows"] = c10::IValue::make_capsule(held);
    return at::linear(x, held->rows.unpack(x.scalar_type()), held->bias);
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    const auto held = c10::static_intrusive_pointer_cast<HeldRows>(context->saved_data["rows"].toCapsule());
    return {at::matmul(grads[0], held->rows.unpack(grads[0].scalar_type())), Tensor()};
  }
};

Tensor linear_with(const FrozenRows& rows, const Tensor& x, const Tensor& bias) {
  if (!x.requires_grad() || !at::GradMode::is_enabled()) return at::linear(x, rows.unpack(x.scalar_type()), bias);
  return FrozenLinear::apply(x, c10::make_intrusive<HeldRows>(rows, bias));
}

/// Embeddings, the head and routers stay as they are, as every program that quantises leaves them.
bool can_freeze(WeightKind kind) {
  switch (kind) {
    case WeightKind::kQuery:
    case WeightKind::kKey:
    case WeightKind::kValue:
    case WeightKind::kAttnOut:
    case WeightKind::kGate:
    case WeightKind::kUp:
    case WeightKind::kDown:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool FreezeRule::freezes(WeightId id) const {
  return can_freeze(id.kind) && std::ranges::find(edited, id) == edited.end();
}

std::string FreezeRule::key(const WeightSpec& spec) const {
  return quantises(spec) ? std::string(quantiser_name(*quantiser)) : "";
}

std::string FreezeRule::key(const ModelConfig& config) const {
  if (!quantiser) return "";
  ContentHash hash;
  for (const WeightSpec& spec : weight_table(config)) hash.add(spec.name).add(key(spec));
  return hash.hex();
}

Tensor FrozenRows::unpack(at::ScalarType dtype) const {
  if (rows == matrix.rows()) return matrix.unpack(dtype);
  Tensor out = torch::empty({rows, matrix.columns()}, torch::TensorOptions(dtype).device(matrix.device()));
  const int64_t group = matrix.rows() / groups, own = rows / groups;
  for (int64_t g = 0; g < groups; ++g) matrix.unpack_rows(g * group + begin, out.narrow(0, g * own, own));
  return out;
}

std::vector<int64_t> FrozenMatrix::sizes() const {
  std::vector<int64_t> sizes{parts_.front().rows, parts_.front().matrix.columns()};
  sizes[static_cast<size_t>(axis_)] *= static_cast<int64_t>(parts_.size());
  return sizes;
}

Tensor FrozenMatrix::linear(const Tensor& x, const Tensor& bias) const {
  if (parts_.size() == 1) return linear_with(parts_.front(), x, bias);
  return at::linear(x, unpack(x.scalar_type()), bias);
}

Tensor FrozenMatrix::linear_of_expert(const Tensor& x, int64_t expert) const {
  return linear_with(parts_[static_cast<size_t>(expert)], x, {});
}

Tensor FrozenMatrix::unpack(at::ScalarType dtype) const {
  if (parts_.size() == 1) return parts_.front().unpack(dtype);
  std::vector<Tensor> unpacked;
  for (const FrozenRows& part : parts_) unpacked.push_back(part.unpack(dtype));
  return torch::cat(unpacked, axis_);
}

}  // namespace lancet
