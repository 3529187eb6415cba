// How one module's weight is quantised, as a configuration says it.
#pragma once

#include <cstdint>

namespace lancet {

/// Layouts of a matrix in files.
enum class MatrixPacking {
  kBitsAndBytes4,     ///< places in a table of 16 numbers, two a byte; scales of blocks of the flattened matrix
  kBitsAndBytes8,     ///< whole numbers of a byte; a scale a row
  kGptq,              ///< whole numbers without a sign, packed along the inputs
  kAwq,               ///< whole numbers of 4 bits, packed along the outputs in an order of its own
  kFloat8,            ///< E4M3
  kCompressedPacked,  ///< compressed-tensors: whole numbers packed along the inputs, row by row
  kCompressedInt8,    ///< compressed-tensors: whole numbers of a byte
  kMxfp4,             ///< E2M1, two a byte, of all experts in one tensor; exponents (E8M0) of blocks of 32
  kGguf               ///< blocks of a GGUF file, row by row, of any of its types
};

/// Neighbours in a matrix [out, in] that share a scale; 0: all there are in that direction.
struct ScaleBlock {
  int64_t rows = 1;
  int64_t columns = 0;
  bool operator==(const ScaleBlock&) const = default;
};

/// What is subtracted from a whole number before it is scaled.
enum class ZeroPoints {
  kNone,          ///< nothing but the half of the range, where numbers are stored without a sign
  kStored,        ///< a number for each scale
  kStoredLessOne  ///< likewise, stored less one: GPTQ's first format
};

/// How one module's weight is quantised.
struct MatrixCode {
  MatrixPacking packing = MatrixPacking::kFloat8;
  int64_t bits = 8;
  ScaleBlock block = {};  ///< kBitsAndBytes4: what the file's own record says counts
  ZeroPoints zeros = ZeroPoints::kNone;
  bool symmetric = true;
  bool ordered = false;        ///< the file has to say which group each column belongs to
  bool nested = false;         ///< kBitsAndBytes4: the scales are quantised too
  uint32_t block_type = 0;     ///< kGguf: GgufType::number, which only the file says
  bool in_scale_type = false;  ///< kFloat8: computed in the scales' type, rather than in f32
  bool operator==(const MatrixCode&) const = default;
};

}  // namespace lancet
