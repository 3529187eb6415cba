#include "stored_parts.h"

#include <torch/types.h>

#include <algorithm>
#include <stdexcept>

#include "formats/codecs.h"
#include "lancet/core/strings.h"

namespace lancet {

int64_t ScaleLayout::groups() const {
  if (flat_block > 0) return 1;
  return blocks_of(columns, columns_of_scale);
}

int64_t ScaleLayout::scale_rows() const {
  return flat_block > 0 ? blocks_of(rows * columns, flat_block) : blocks_of(rows, rows_of_scale);
}

StoredParts::StoredParts(const PackedSpec& spec, std::span<const Tensor> parts, at::Device device)
    : spec_(spec), codec_(codec_of(spec.code.packing)) {
  if (parts.size() != spec.parts.size())
    throw std::logic_error(cat(spec.name, ": ", parts.size(), " tensors for ", spec.parts.size(), " parts"));
  for (size_t i = 0; i < parts.size(); ++i) {
    if (spec.parts[i].role == PartRole::kRecord) continue;
    if (!parts[i].defined()) throw std::logic_error(cat(spec.parts[i].tensor, ": is needed to pack its matrix"));
    parts_[static_cast<size_t>(spec.parts[i].role)] = parts[i].to(device);
  }
}

ScaleLayout StoredParts::layout() const {
  ScaleLayout layout{.rows = spec_.rows, .columns = spec_.columns};
  if (codec_.has_flat_blocks) {
    layout.columns_of_scale = spec_.block_size;
    if (spec_.columns % spec_.block_size != 0) layout.flat_block = spec_.block_size;
    return layout;
  }
  layout.rows_of_scale = spec_.code.block.rows;
  layout.columns_of_scale = spec_.code.block.columns == 0 ? spec_.columns : spec_.code.block.columns;
  const Tensor& order = part(PartRole::kOrder);
  if (!order.defined()) return layout;
  for (const double group : to_doubles(order)) layout.order.push_back(static_cast<int64_t>(group));
  int64_t column = 0;
  const bool is_in_turn = std::all_of(layout.order.begin(), layout.order.end(),
                                      [&](int64_t group) { return group == column++ / layout.columns_of_scale; });
  // compressed-tensors says with -1 that there is none
  if (is_in_turn || layout.order.front() == -1) layout.order.clear();
  return layout;
}

Tensor StoredParts::scale_numbers() const {
  const Tensor& stored = part(PartRole::kScales);
  return codec_.has_exponents ? stored.contiguous().view(at::kFloat8_e8m0fnu) : stored;
}

FoundScales StoredParts::scales(const ScaleLayout& layout) const {
  const auto grid = [&](const Tensor& values) {
    return codec_.has_outputs_last ? values : values.reshape({layout.scale_rows(), layout.groups()}).transpose(0, 1);
  };
  FoundScales scales;
  if (spec_.code.nested)
    scales.places = grid(part(PartRole::kScales));
  else
    scales.scales = grid(scale_numbers().to(at::kFloat));
  if (const Tensor& zeros = part(PartRole::kZeros); zeros.defined())
    scales.zeros = codec_.load_zeros(spec_, zeros).to(at::kFloat);
  return scales;
}

void StoredParts::set(PartRole role, const Tensor& numbers) {
  const Tensor& stored = part(role);
  parts_[static_cast<size_t>(role)] = numbers.contiguous().flatten().view(stored.scalar_type()).view(stored.sizes());
}

void StoredParts::set_scales(const FoundScales& found) {
  const Tensor values = spec_.code.nested ? found.places : found.scales.to(scale_numbers().scalar_type());
  set(PartRole::kScales, codec_.has_outputs_last ? values : values.transpose(0, 1));
  if (!found.zeros.defined()) return;
  const Tensor zeros = found.zeros.to(at::kByte);
  if (!zeros.equal(codec_.load_zeros(spec_, part(PartRole::kZeros))))
    set(PartRole::kZeros, codec_.store_zeros(spec_.code, zeros));
}

void StoredParts::set_codes(const Tensor& codes) { set(PartRole::kCodes, codec_.store_codes(spec_.code, codes)); }

}  // namespace lancet
