#include "layer_weights.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/few_rows.h"
#include "lancet/kernels/linear.h"
#include "lancet/models/neighbour_places.h"
#include "lancet/models/quantised_linear.h"

namespace lancet {

Tensor LayerWeights::product(const Tensor& x, WeightKind weight, const Tensor& bias) const {
  const QuantisedLinear* quantised = quantised_[static_cast<size_t>(weight)];
  return quantised != nullptr ? quantised->linear(x, bias) : linear_of(x, (*this)[weight], bias);
}

Tensor LayerWeights::joined(NeighbourKinds kinds) const {
  std::vector<const Tensor*> parts;
  for (const WeightKind kind : kinds) parts.push_back(&(*this)[kind]);
  return joined_neighbours(parts);
}

Tensor LayerWeights::linear_of_neighbours(const Tensor& x, NeighbourKinds weights, NeighbourKinds biases) const {
  const Tensor matrix = joined(weights);
  if (!matrix.defined()) return {};
  const Tensor bias = joined(biases);
  const bool has_bias = std::ranges::any_of(biases, [&](WeightKind kind) { return (*this)[kind].defined(); });
  return has_bias && !bias.defined() ? Tensor() : linear_of(x, matrix, bias);
}

Tensor LayerWeights::linear_of_expert(const Tensor& x, WeightKind weight, int64_t expert, int64_t width,
                                      const Tensor& bias) const {
  if (const QuantisedLinear* quantised = quantised_[static_cast<size_t>(weight)]; quantised != nullptr)
    return quantised->linear_of_expert(x, expert, bias);
  const int64_t axis = weight == WeightKind::kDown ? 1 : 0;
  return linear_of(x, (*this)[weight].narrow(axis, expert * width, width), bias);
}

namespace {

constexpr std::array<NeighbourKinds, 4> kGroups{kQueryKeyValue, kQueryKeyValueBias, kGateUp, kGateUpBias};

/// Libraries compute products in other ways, with other bits, if memory does not begin at a cache line.
constexpr int64_t kLineBytes = 64;

using SpecsById = std::map<WeightId, const WeightSpec*>;

/// Returns the group's weights of one layer; empty if they cannot be neighbours.
std::vector<const WeightSpec*> neighbours(const SpecsById& specs, NeighbourKinds kinds, int64_t layer,
                                          const QuantiseRule& rule, int64_t element_bytes) {
  std::vector<const WeightSpec*> group;
  for (const WeightKind kind : kinds) {
    const auto at = specs.find({kind, layer});
    if (at == specs.end()) return {};
    const WeightSpec& spec = *at->second;
    const bool is_edited = std::ranges::find(rule.edited, spec.id) != rule.edited.end();
    if (is_edited || rule.keeps_packed(spec) || rule.quantises(spec)) return {};
    if (spec.size() * element_bytes % kLineBytes != 0) return {};
    group.push_back(&spec);
  }
  return group;
}

}  // namespace

std::map<WeightId, Tensor> neighbour_places(std::span<const WeightSpec* const> specs, const QuantiseRule& rule,
                                            at::ScalarType type, at::Device device) {
  SpecsById by_id;
  for (const WeightSpec* spec : specs) by_id.emplace(spec->id, spec);
  std::map<WeightId, Tensor> places;
  for (const auto& [id, first] : by_id)
    for (const NeighbourKinds kinds : kGroups) {
      const bool is_of_experts = id.kind == WeightKind::kGate && by_id.contains({WeightKind::kRouter, id.layer});
      if (id.kind != kinds.front() || is_of_experts) continue;
      const auto group = neighbours(by_id, kinds, id.layer, rule, static_cast<int64_t>(c10::elementSize(type)));
      if (group.empty()) continue;
      std::vector<int64_t> sizes = first->shape;
      sizes.front() = 0;
      for (const WeightSpec* spec : group) sizes.front() += spec->shape.front();
      const Tensor whole = torch::empty(sizes, torch::TensorOptions(type).device(device));
      for (int64_t begin = 0; const WeightSpec* spec : group) {
        places.emplace(spec->id, whole.narrow(0, begin, spec->shape.front()));
        begin += spec->shape.front();
      }
    }
  return places;
}

Tensor joined_neighbours(std::span<const Tensor* const> parts) {
  const Tensor& first = *parts.front();
  if (!first.defined()) return {};
  const auto* next = static_cast<const std::byte*>(first.const_data_ptr());
  int64_t rows = 0;
  for (const Tensor* part : parts) {
    if (!part->defined() || part->requires_grad() || !part->is_contiguous() || !part->is_alias_of(first)) return {};
    if (part->const_data_ptr() != next) return {};
    next += part->nbytes();
    rows += part->size(0);
  }
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes.front() = rows;
  return first.as_strided(sizes, first.strides(), first.storage_offset());
}

namespace {

/// What autograd keeps of a product. It has no number of the matrix.
struct HeldProduct : torch::CustomClassHolder {
  HeldProduct(QuantisedLinear held, Tensor added) : matrix(std::move(held)), bias(std::move(added)) {}
  QuantisedLinear matrix;
  Tensor bias;  ///< may be undefined, which autograd does not accept as an argument
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

/// Embeddings, the head and routers are not quantised, as in every program that quantises.
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

void QuantisedRows::read_rows(int64_t first, int64_t count, float* out) const {
  const int64_t group = matrix.rows() / groups, own = rows / groups;
  while (count > 0) {
    const int64_t g = first / own, within = first % own, n = std::min(count, own - within);
    matrix.read_rows(g * group + begin + within, n, out);
    first += n;
    count -= n;
    out += n * matrix.columns();
  }
}

std::vector<int64_t> QuantisedLinear::sizes() const {
  std::vector<int64_t> sizes{parts_.front().rows, parts_.front().matrix.columns()};
  sizes[static_cast<size_t>(axis_)] *= static_cast<int64_t>(parts_.size());
  return sizes;
}

Tensor QuantisedLinear::linear(const Tensor& x, const Tensor& bias) const {
  if (bias.defined() && bias.requires_grad())
    throw std::logic_error("a quantised matrix's bias needs a gradient, which its product does not give");
  if (x.requires_grad() && at::GradMode::is_enabled())
    return QuantisedProduct::apply(x, c10::make_intrusive<HeldProduct>(*this, bias));
  if (are_few_rows(x) && can_read_rows()) return few_rows_linear(x, bias);
  return linear_of(x, unpack(x.scalar_type()), bias);
}

bool QuantisedLinear::can_read_rows() const {
  const bool has_whole_rows = parts_.size() == 1 || axis_ == 0;
  return has_whole_rows &&
         std::ranges::all_of(parts_, [](const QuantisedRows& part) { return part.matrix.can_read_rows(); });
}

Tensor QuantisedLinear::few_rows_linear(const Tensor& x, const Tensor& bias) const {
  const bool is_bf16 = x.scalar_type() == at::kBFloat16;
  const int64_t columns = parts_.front().matrix.columns();
  const auto read = [&](int64_t begin, int64_t count, float* rows) {
    for (const QuantisedRows& part : parts_) {
      const int64_t n = std::clamp<int64_t>(part.rows - begin, 0, count);
      if (n > 0) part.read_rows(begin, n, rows);
      rows += n * columns;
      count -= n;
      begin = std::max<int64_t>(0, begin - part.rows);
    }
  };
  const auto read_rounded = [&](int64_t begin, int64_t count, float* rows) {
    read(begin, count, rows);
    round_to_bf16({rows, static_cast<size_t>(count * columns)});
  };
  return few_rows_product(x, sizes().front(), is_bf16 ? ReadRows(read_rounded) : ReadRows(read), bias);
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
