// compressed-tensors' whole numbers: packed along the inputs row by row, and as bytes. Its floats of 8 bits are those
// of float8.cpp.
#include <torch/types.h>

#include "codecs.h"
#include "lancet/runtime/send.h"
#include "numbers/number_tables.h"

namespace lancet {
namespace {

/// Unpacks words along the scale rows, [words, groups] i32.
Tensor load_packed_zeros(const PackedSpec& spec, const Tensor& stored) {
  return unpack_words(stored.transpose(0, 1).contiguous(), spec.code.bits, blocks_of(spec.rows, spec.code.block.rows));
}

Tensor store_packed_zeros(const MatrixCode& code, const Tensor& zeros) {
  return pack_words(zeros, code.bits).transpose(0, 1);
}

SettleCodes assemble_packed(Assembly& assembly) {
  const PackedSpec& spec = assembly.spec();
  const Tensor words = as_bytes(assembly.part(PartRole::kCodes));
  assembly.take_whole_codes(words.narrow(1, 0, spec.columns * spec.code.bits / 8).contiguous());
  assembly.take_scales(assembly.part(PartRole::kScales).scalar_type());
  assembly.take_order();
  MeasuredZeros zeros;
  if (const Tensor stored = assembly.part(PartRole::kZeros); stored.defined())
    zeros = assembly.measure_zeros(load_packed_zeros(spec, stored));
  return [&assembly, zeros] {
    Tensor& order = assembly.numbers().order;
    if (order.defined() && assembly.least_group() == -1) order.reset();  // which says that there is none
    return assembly.settle_whole(zeros);
  };
}

NumberLine whole_line(const PackedSpec& spec, at::ScalarType scale_type, at::Device) {
  return NumberLine::whole(spec.code, scale_type);
}

Tensor store_packed(const MatrixCode& code, const Tensor& codes) {
  return pack_words(codes.transpose(0, 1).contiguous(), code.bits);
}

/// Adds the tensors that compressed-tensors, compressors/, writes.
void add_packed_parts(NewParts& parts) {
  const MatrixCode& code = parts.code();
  const std::vector<int64_t> scales = parts.scale_shape();
  parts.need_words(parts.columns(), "columns");
  parts.add(PartRole::kCodes, ".weight_packed", at::kInt, {parts.rows(), parts.columns() * code.bits / 32});
  parts.add(PartRole::kScales, ".weight_scale", at::kBFloat16, scales);
  if (code.zeros == ZeroPoints::kStored)
    parts.add(PartRole::kZeros, ".weight_zero_point", at::kInt, {blocks_of(scales[0] * code.bits, 32), scales[1]});
  parts.add(PartRole::kRecord, ".weight_shape", to_index({parts.rows(), parts.columns()}, parts.device()));
}

/// Zero points without signs, as codes are kept beside them; differences stay the same.
Tensor load_byte_zeros(const PackedSpec& spec, const Tensor& stored) {
  return as_bytes(stored.reshape({blocks_of(spec.rows, spec.code.block.rows), -1}))
      .bitwise_xor(kSignOfByte)
      .transpose(0, 1);
}

Tensor store_byte_zeros(const MatrixCode&, const Tensor& zeros) {
  return zeros.bitwise_xor(kSignOfByte).view(at::kChar).transpose(0, 1);
}

SettleCodes assemble_bytes(Assembly& assembly) {
  const Tensor codes = assembly.part(PartRole::kCodes).contiguous(), stored = assembly.part(PartRole::kZeros);
  assembly.take_scales(assembly.part(PartRole::kScales).scalar_type());
  if (!stored.defined()) {
    assembly.numbers().codes = codes;
    return [] { return kLargestOfSignedByte; };
  }
  assembly.take_whole_codes(codes.view(at::kByte).bitwise_xor(kSignOfByte));
  const MeasuredZeros zeros = assembly.measure_zeros(load_byte_zeros(assembly.spec(), stored));
  return [&assembly, zeros] { return assembly.settle_whole(zeros); };
}

Tensor store_bytes(const MatrixCode&, const Tensor& codes) { return codes.transpose(0, 1).bitwise_xor(kSignOfByte); }

void add_byte_parts(NewParts& parts) {
  parts.add(PartRole::kCodes, ".weight", at::kChar, {parts.rows(), parts.columns()});
  parts.add(PartRole::kScales, ".weight_scale", at::kBFloat16, parts.scale_shape());
  if (parts.code().zeros == ZeroPoints::kStored)
    parts.add(PartRole::kZeros, ".weight_zero_point", at::kChar, parts.scale_shape());
}

}  // namespace

constexpr MatrixCodec kCompressedPackedCodec{.packing = MatrixPacking::kCompressedPacked,
                                             .assemble = assemble_packed,
                                             .line = whole_line,
                                             .store_codes = store_packed,
                                             .load_zeros = load_packed_zeros,
                                             .store_zeros = store_packed_zeros,
                                             .add_parts = add_packed_parts};

constexpr MatrixCodec kCompressedInt8Codec{.packing = MatrixPacking::kCompressedInt8,
                                           .assemble = assemble_bytes,
                                           .line = whole_line,
                                           .store_codes = store_bytes,
                                           .load_zeros = load_byte_zeros,
                                           .store_zeros = store_byte_zeros,
                                           .add_parts = add_byte_parts};

}  // namespace lancet
