#include "lancet/models/quantised_linear.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <algorithm>
#include <stdexcept>

#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/linear.h"

namespace lancet {
namespace {

/// What autograd holds of a product: no number of the matrix.
struct HeldProduct : torch::CustomClassHolder {
  HeldProduct(QuantisedLinear held, Tensor added) : matrix(std::move(held)), bias(std::move(added)) {}
  QuantisedLinear matrix;
  Tensor bias;  ///< may be undefined, which autograd takes for no argument
};

struct QuantisedProduct : torch::autograd::Function<QuantisedProduct> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        const c10::intrusive_ptr<HeldProduct>& held) {
    context->saved_data["product"] = c10::IValue::make_capsule(held);
    return linear_of(x, held->matrix.unpack(x.scalar_type()), held->bias);
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    const auto held = c10::static_intrusive_pointer_cast<HeldProduct>(context->saved_data["product"].toCapsule());
    return {linear_gradient(grads[0], held->matrix.unpack(grads[0].scalar_type())), Tensor()};
  }
};

/// Embeddings, the head and routers stay as they are, as every program that quantises leaves them.
bool can_quantise(WeightKind kind) {
  switch (kind) {
    case WeightKind::kQuery:
    case WeightKind::kKey:
    case WeightKind::kValue:
    case WeightKind::kQueryDown:
    case WeightKind::kKeyValueDown:
    case WeightKind::kKeyValueUp:
    case WeightKind::kAttnGate:
    case WeightKind::kAttnOut:
    case WeightKind::kMixerQuery:
    case WeightKind::kMixerKey:
    case WeightKind::kMixerValue:
    case WeightKind::kMixerGate:
    case WeightKind::kMixerStepDown:
    case WeightKind::kMixerStep:
    case WeightKind::kMixerOut:
    case WeightKind::kSharedGate:
    case WeightKind::kSharedUp:
    case WeightKind::kSharedDown:
    case WeightKind::kGate:
    case WeightKind::kUp:
    case WeightKind::kDown:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool QuantiseRule::covers(WeightId id) const {
  return can_quantise(id.kind) && std::ranges::find(edited, id) == edited.end();
}

void QuantiseRule::add_edited(std::span<const WeightId> ids) {
  for (const WeightId id : ids)
    if (std::ranges::find(edited, id) == edited.end()) edited.push_back(id);
}

std::string QuantiseRule::key(const WeightSpec& spec) const {
  return quantises(spec) ? std::string(quantiser_name(*quantiser)) : "";
}

std::string QuantiseRule::key(const ModelConfig& config) const {
  if (!quantiser) return "";
  ContentHash hash;
  for (const WeightSpec& spec : weight_table(config)) hash.add(spec.name).add(key(spec));
  return hash.hex();
}

void QuantisedRows::unpack_into(const Tensor& out) const {
  const int64_t group = matrix.rows() / groups, own = rows / groups;
  for (int64_t g = 0; g < groups; ++g) matrix.unpack_rows(g * group + begin, out.narrow(0, g * own, own));
}

std::vector<int64_t> QuantisedLinear::sizes() const {
  std::vector<int64_t> sizes{parts_.front().rows, parts_.front().matrix.columns()};
  sizes[static_cast<size_t>(axis_)] *= static_cast<int64_t>(parts_.size());
  return sizes;
}

Tensor QuantisedLinear::linear(const Tensor& x, const Tensor& bias) const {
  if (bias.defined() && bias.requires_grad())
    throw std::logic_error("a quantised matrix's bias needs a gradient, which its product does not give");
  if (!x.requires_grad() || !at::GradMode::is_enabled()) return linear_of(x, unpack(x.scalar_type()), bias);
  return QuantisedProduct::apply(x, c10::make_intrusive<HeldProduct>(*this, bias));
}

Tensor QuantisedLinear::linear_of_expert(const Tensor& x, int64_t expert, const Tensor& bias) const {
  return QuantisedLinear({parts_[static_cast<size_t>(expert)]}, axis_).linear(x, bias);
}

Tensor QuantisedLinear::unpack(at::ScalarType dtype) const {
  const torch::NoGradGuard no_grad;
  Tensor out = torch::empty(sizes(), torch::TensorOptions(dtype).device(device()));
  const std::vector<Tensor> places = out.chunk(static_cast<int64_t>(parts_.size()), axis_);
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].unpack_into(places[i]);
  return out;
}

}  // namespace lancet
