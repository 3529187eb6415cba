#include "neighbours.h"

#include <torch/types.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lancet/models/neighbour_places.h"

namespace lancet {
namespace {

constexpr std::array<NeighbourKinds, 4> kGroups{kQueryKeyValue, kQueryKeyValueBias, kGateUp, kGateUpBias};

/// Libraries of products take other paths, with other bits, for memory that does not begin at a cache line.
constexpr int64_t kLineBytes = 64;

using SpecsById = std::map<WeightId, const WeightSpec*>;

/// The group's weights of one layer; empty: they cannot be neighbours.
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

}  // namespace lancet
