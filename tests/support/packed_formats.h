// Matrices of every quantised format as files have them, for tests of packing.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "lancet/quant/pack.h"

namespace lancet::testing {

struct StoredMatrix {
  std::string format = {};
  PackedSpec spec = {};
  std::vector<at::Tensor> parts = {};

  StoredMatrix(std::string format_name, int64_t rows, int64_t columns, const MatrixCode& code)
      : format(std::move(format_name)), spec{.name = "w.weight", .rows = rows, .columns = columns, .code = code} {}

  void add(PartRole role, const at::Tensor& tensor) {
    spec.parts.push_back({role, "tensor " + std::to_string(parts.size())});
    parts.push_back(tensor);
  }
  std::vector<at::Tensor> parts_on(at::Device device) const {
    std::vector<at::Tensor> there;
    for (const at::Tensor& part : parts) there.push_back(part.to(device));
    return there;
  }
};

inline StoredMatrix stored_gptq(int64_t rows, int64_t columns, int64_t bits, ZeroPoints zeros) {
  StoredMatrix stored("GPTQ of " + std::to_string(bits) + " bits", rows, columns,
                      {.packing = MatrixPacking::kGptq,
                       .bits = bits,
                       .block = {1, 32},
                       .zeros = zeros,
                       .symmetric = zeros == ZeroPoints::kStoredLessOne});
  stored.add(PartRole::kCodes, torch::zeros({columns * bits / 32, rows}, at::kInt));
  stored.add(PartRole::kZeros, torch::full({columns / 32, rows * bits / 32}, bits == 8 ? 0x7f7f7f7f : 0, at::kInt));
  stored.add(PartRole::kScales, torch::full({columns / 32, rows}, 0.01, at::kHalf));
  if (bits != 4) return stored;
  stored.format += ", columns in an order of their own";
  stored.add(PartRole::kOrder, torch::arange(columns, at::kInt).remainder(columns / 32));
  return stored;
}

inline StoredMatrix stored_awq(int64_t rows, int64_t columns) {
  StoredMatrix stored(
      "AWQ", rows, columns,
      {.packing = MatrixPacking::kAwq, .bits = 4, .block = {1, 64}, .zeros = ZeroPoints::kStored, .symmetric = false});
  stored.add(PartRole::kCodes, torch::zeros({columns, rows / 8}, at::kInt));
  stored.add(PartRole::kZeros, torch::zeros({columns / 64, rows / 8}, at::kInt));
  stored.add(PartRole::kScales, torch::full({columns / 64, rows}, 0.01, at::kHalf));
  return stored;
}

inline StoredMatrix stored_float8(int64_t rows, int64_t columns, const ScaleBlock& block) {
  StoredMatrix stored(block.rows == 1 ? "fp8 by rows" : "fp8 by blocks", rows, columns,
                      {.packing = MatrixPacking::kFloat8, .block = block});
  stored.add(PartRole::kCodes, torch::zeros({rows, columns}, at::kByte).view(at::kFloat8_e4m3fn));
  stored.add(PartRole::kScales, torch::full({blocks_of(rows, block.rows), blocks_of(columns, block.columns)}, 0.01));
  return stored;
}

inline at::Tensor nf4_numbers() {
  return torch::tensor({-1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,
                        -0.18477343022823334F, -0.09105003625154495F, 0.0F, 0.07958029955625534F, 0.16093020141124725F,
                        0.24611230194568634F, 0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F,
                        0.7229568362236023F, 1.0F});
}

inline StoredMatrix stored_nf4(int64_t rows, int64_t columns, bool is_nested) {
  StoredMatrix stored(is_nested ? "nested nf4" : "nf4", rows, columns,
                      {.packing = MatrixPacking::kBitsAndBytes4, .bits = 4, .block = {1, 64}, .nested = is_nested});
  const int64_t blocks = blocks_of(rows * columns, 64);
  stored.spec.nested_offset = 0.05;
  stored.add(PartRole::kCodes, torch::zeros({rows * columns / 2, 1}, at::kByte));
  stored.add(PartRole::kTable, nf4_numbers());
  stored.add(PartRole::kScales, torch::zeros({blocks}, is_nested ? at::kByte : at::kFloat));
  if (!is_nested) return stored;
  stored.add(PartRole::kNestedScales, torch::full({blocks_of(blocks, 256)}, 0.01));
  stored.add(PartRole::kNestedTable, torch::linspace(-1, 1, 256));
  return stored;
}

inline StoredMatrix stored_int8(int64_t rows, int64_t columns) {
  StoredMatrix stored("int8 of bitsandbytes", rows, columns,
                      {.packing = MatrixPacking::kBitsAndBytes8, .block = {1, 0}});
  stored.add(PartRole::kCodes, torch::zeros({rows, columns}, at::kChar));
  stored.add(PartRole::kScales, torch::full({rows}, 0.01));
  stored.add(PartRole::kRecord, torch::zeros({}, at::kByte));
  return stored;
}

/// `group`: columns with one scale; 0: all.
inline StoredMatrix stored_compressed(int64_t rows, int64_t columns, int64_t bits, ZeroPoints zeros, int64_t group) {
  StoredMatrix stored("compressed-tensors of " + std::to_string(bits) + " bits" + (group == 0 ? " by rows" : ""), rows,
                      columns,
                      {.packing = MatrixPacking::kCompressedPacked,
                       .bits = bits,
                       .block = {1, group},
                       .zeros = zeros,
                       .symmetric = zeros == ZeroPoints::kNone});
  stored.add(PartRole::kCodes, torch::zeros({rows, columns * bits / 32}, at::kInt));
  stored.add(PartRole::kScales, torch::full({rows, blocks_of(columns, group)}, 0.01, at::kBFloat16));
  if (zeros != ZeroPoints::kNone)
    stored.add(PartRole::kZeros, torch::zeros({blocks_of(rows * bits, 32), blocks_of(columns, group)}, at::kInt));
  return stored;
}

inline StoredMatrix stored_compressed_int8(int64_t rows, int64_t columns) {
  StoredMatrix stored(
      "int8 of compressed-tensors", rows, columns,
      {.packing = MatrixPacking::kCompressedInt8, .block = {1, 0}, .zeros = ZeroPoints::kStored, .symmetric = false});
  stored.add(PartRole::kCodes, torch::zeros({rows, columns}, at::kChar));
  stored.add(PartRole::kScales, torch::full({rows, 1}, 0.01, at::kBFloat16));
  stored.add(PartRole::kZeros, torch::zeros({rows, 1}, at::kChar));
  return stored;
}

inline StoredMatrix stored_mxfp4(int64_t rows, int64_t columns) {
  StoredMatrix stored("MXFP4", rows, columns, {.packing = MatrixPacking::kMxfp4, .bits = 4, .block = {1, 32}});
  stored.add(PartRole::kCodes, torch::zeros({rows, columns / 32, 16}, at::kByte));
  stored.add(PartRole::kScales, torch::full({rows, columns / 32}, 120, at::kByte));
  return stored;
}

/// All numbers 0. Rows in steps of 32, columns in steps of 64.
inline std::vector<StoredMatrix> one_of_each_format(int64_t rows, int64_t columns) {
  return {stored_gptq(rows, columns, 2, ZeroPoints::kStored),
          stored_gptq(rows, columns, 4, ZeroPoints::kStored),
          stored_gptq(rows, columns, 8, ZeroPoints::kStoredLessOne),
          stored_awq(rows, columns),
          stored_float8(rows, columns, {1, 0}),
          stored_float8(rows, columns, {48, 128}),
          stored_nf4(rows, columns, false),
          stored_nf4(rows, columns, true),
          stored_int8(rows, columns),
          stored_compressed(rows, columns, 4, ZeroPoints::kNone, 64),
          stored_compressed(rows, columns, 4, ZeroPoints::kStored, 0),
          stored_compressed(rows, columns, 8, ZeroPoints::kStored, 64),
          stored_compressed_int8(rows, columns),
          stored_mxfp4(rows, columns)};
}

}  // namespace lancet::testing
