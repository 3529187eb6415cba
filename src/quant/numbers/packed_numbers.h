// What a packed matrix is made of, all formats alike: codes row by row, how a code becomes a number, and what it is
// scaled by.
#pragma once

#include <string>
#include <vector>

#include "lancet/quant_formats/packed_spec.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// How codes become numbers.
enum class CodeKind {
  kPairs,   ///< 4 bits: a byte is a place in `pairs`, which has both of its numbers
  kPlanes,  ///< 2 or 3 bits, low bits first: taken apart by shifting
  kBytes,   ///< a byte is a number of the tensor's type: u8, i8 or E4M3
  kBlocks   ///< blocks of a GGUF file, which have their scales within
};

/// Scales that are places in a table, whose own scales are those of blocks of 256 of them.
struct NestedScales {
  Tensor table = {};   ///< [256] f32
  Tensor scales = {};  ///< [blocks] f32
  int64_t block_size = 256;
  double offset = 0;
};

struct PackedNumbers {
  std::string name = {};
  int64_t rows = 0;
  int64_t columns = 0;
  at::ScalarType type = at::kFloat;  ///< that numbers are computed in

  CodeKind kind = CodeKind::kBytes;
  int64_t bits = 8;
  uint32_t block_type = 0;   ///< kBlocks: GgufType::number
  Tensor codes = {};         ///< [rows, bytes of a row]
  Tensor pairs = {};         ///< [256]: two numbers of `type` as the bits of one integer
  double zero = 0;           ///< zero point of all codes that are not kPairs, where `zeros` is undefined
  Tensor zeros = {};         ///< [scale rows, scale columns] u8, undefined: none
  Tensor scales = {};        ///< [scale rows, scale columns] `type` or E8M0; flat: [blocks]; nested: u8
  ScaleBlock block = {};     ///< size of the numbers with one scale
  int64_t flat_block = 0;    ///< numbers with one scale in the flattened matrix where above 0, and `block` says nothing
  NestedScales nested = {};  ///< table undefined: none
  double factor = 1;         ///< factor of everything, after the scales
  Tensor order = {};         ///< [columns] i64: the scale column of each column; undefined: `block` says it
  double largest = 0;        ///< bound of what comes out

  /// Every tensor that is there.
  template <typename Numbers, typename Act>
  static void for_each(Numbers& numbers, const Act& act) {
    for (auto* tensor : {&numbers.codes, &numbers.pairs, &numbers.zeros, &numbers.scales, &numbers.nested.table,
                         &numbers.nested.scales, &numbers.order})
      if (tensor->defined()) act(*tensor);
  }
};

/// Rows worth taking at a time, where a row has so many numbers: on the host what a cache holds, elsewhere enough that
/// starting kernels costs little.
int64_t rows_at_a_time(int64_t columns, at::Device device);

/// The largest number of a floating type. Throws: std::logic_error for others.
double largest_of(at::ScalarType type);

/// Numbers of the codes of rows `begin` ... into `out` [n, columns] of `numbers.type`, which is contiguous.
void decode_rows(const PackedNumbers& numbers, int64_t begin, const Tensor& out);
/// Whether decode_rows() can write to `out`.
bool can_decode_into(const PackedNumbers& numbers, const Tensor& out);
/// Subtracts zero points of the rows from `begin` on, and scales.
void scale_rows(const PackedNumbers& numbers, int64_t begin, const Tensor& out);

}  // namespace lancet
