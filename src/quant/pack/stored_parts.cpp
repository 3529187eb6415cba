#include "stored_parts.h"

#include <torch/types.h>

#include <algorithm>
#include <stdexcept>

#include "lancet/core/strings.h"
#include "pack_words.h"
#include "words.h"

namespace lancet {
namespace {

constexpr int64_t kSignOfByte = 0x80;

}  // namespace

int64_t ScaleLayout::groups() const {
  if (flat_block > 0) return 1;
  return blocks_of(columns, columns_of_scale);
}

int64_t ScaleLayout::scale_rows() const {
  return flat_block > 0 ? blocks_of(rows * columns, flat_block) : blocks_of(rows, rows_of_scale);
}

StoredParts::StoredParts(const PackedSpec& spec, std::span<const Tensor> parts, at::Device device) : spec_(spec) {
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
  if (spec_.code.packing == MatrixPacking::kBitsAndBytes4) {
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

bool StoredParts::has_outputs_last() const {
  return spec_.code.packing == MatrixPacking::kGptq || spec_.code.packing == MatrixPacking::kAwq;
}

FoundScales StoredParts::scales(const ScaleLayout& layout) const {
  const auto grid = [&](const Tensor& values) {
    return has_outputs_last() ? values : values.reshape({layout.scale_rows(), layout.groups()}).transpose(0, 1);
  };
  FoundScales scales;
  if (spec_.code.nested)
    scales.places = grid(part(PartRole::kScales));
  else
    scales.scales = grid(part(PartRole::kScales)).to(at::kFloat);
  if (part(PartRole::kZeros).defined()) scales.zeros = zero_points().to(at::kFloat);
  return scales;
}

/// [groups, scale rows] u8.
Tensor StoredParts::zero_points() const {
  const Tensor& zeros = part(PartRole::kZeros);
  const int64_t bits = spec_.code.bits;
  switch (spec_.code.packing) {
    case MatrixPacking::kGptq:
      // symmetric files of 3 bits have one zero point and are written in two ways, of which assemble() took one
      if (bits == 3 && spec_.code.symmetric && spec_.code.zeros == ZeroPoints::kStoredLessOne)
        return torch::full({zeros.size(0), spec_.rows}, 4, zeros.options().dtype(at::kByte));
      return unpack_gptq_zeros(zeros, bits, spec_.rows, spec_.code.zeros);
    case MatrixPacking::kAwq:
      return unpack_awq(zeros);
    case MatrixPacking::kCompressedPacked:
      return unpack_words(zeros.transpose(0, 1).contiguous(), bits, blocks_of(spec_.rows, spec_.code.block.rows));
    default:
      return as_bytes(zeros.reshape({blocks_of(spec_.rows, spec_.code.block.rows), -1}))
          .bitwise_xor(kSignOfByte)
          .transpose(0, 1);
  }
}

Tensor StoredParts::as_stored(const Tensor& zeros) const {
  const int64_t bits = spec_.code.bits;
  switch (spec_.code.packing) {
    case MatrixPacking::kGptq: {
      if (spec_.code.zeros == ZeroPoints::kStored) return pack_words(zeros, bits);
      if (bits == 3) return pack_words((zeros - 1).bitwise_and_(7), bits);
      return pack_words(zeros, bits) - ones_of_words(bits);
    }
    case MatrixPacking::kAwq:
      return pack_awq(zeros);
    case MatrixPacking::kCompressedPacked:
      return pack_words(zeros, bits).transpose(0, 1);
    default:
      return zeros.bitwise_xor(kSignOfByte).view(at::kChar).transpose(0, 1);
  }
}

void StoredParts::set(PartRole role, const Tensor& numbers) {
  const Tensor& stored = part(role);
  parts_[static_cast<size_t>(role)] = numbers.contiguous().flatten().view(stored.scalar_type()).view(stored.sizes());
}

void StoredParts::set_scales(const FoundScales& found) {
  const Tensor values = spec_.code.nested ? found.places : found.scales.to(part(PartRole::kScales).scalar_type());
  set(PartRole::kScales, has_outputs_last() ? values : values.transpose(0, 1));
  if (!found.zeros.defined()) return;
  const Tensor zeros = found.zeros.to(at::kByte);
  if (!zeros.equal(zero_points())) set(PartRole::kZeros, as_stored(zeros));
}

Tensor StoredParts::code_bytes(const Tensor& codes) const {
  switch (spec_.code.packing) {
    case MatrixPacking::kBitsAndBytes4: {
      const Tensor pairs = codes.transpose(0, 1).contiguous().view({-1, 2});
      return pairs.select(1, 0).bitwise_left_shift(4).bitwise_or_(pairs.select(1, 1));
    }
    case MatrixPacking::kGptq:
      return words_of_inputs(codes, spec_.code.bits);
    case MatrixPacking::kAwq:
      return pack_awq(codes);
    case MatrixPacking::kCompressedPacked:
      return pack_words(codes.transpose(0, 1).contiguous(), spec_.code.bits);
    case MatrixPacking::kFloat8:
      return codes.transpose(0, 1);
    case MatrixPacking::kBitsAndBytes8:
    case MatrixPacking::kCompressedInt8:
      return codes.transpose(0, 1).bitwise_xor(kSignOfByte);
  }
  return {};
}

void StoredParts::set_codes(const Tensor& codes) { set(PartRole::kCodes, code_bytes(codes)); }

}  // namespace lancet
