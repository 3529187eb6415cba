// Which numbers a format has between two scales' steps: codes of numbers, and the numbers that readers make of codes.
#pragma once

#include <array>

#include "lancet/quant_formats/packed_spec.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Scales as readers get them, and zero points; of shapes that spread over the numbers'.
struct LineScales {
  Tensor scales = {};  ///< f32
  Tensor zeros = {};   ///< f32; undefined: the half of the range

  /// Those of the i-th column, [1, rows], of [n, rows], or of [1, rows] that are all columns'.
  LineScales of_column(int64_t i) const;
};

class NumberLine {
 public:
  // `type`: of readers' arithmetic, where it is not f32.

  /// Numbers of a table by codes of 4 bits; the largest magnitude is 1.
  static NumberLine table(const std::array<float, 16>& numbers, at::Device device);
  static NumberLine float8(at::ScalarType type);
  /// E2M1, whose scales are powers of two.
  static NumberLine float4(at::Device device);
  /// Whole numbers as a code says: of so many bits, with zero points or without.
  static NumberLine whole(const MatrixCode& code, at::ScalarType type);
  /// Whole numbers from -127 to 127 whose scale is the largest number itself, as in bitsandbytes.
  static NumberLine by_largest();

  /// Codes, u8, of the numbers nearest to `numbers`, f32. E4M3 as its bits; whole numbers without a sign.
  Tensor codes(const Tensor& numbers, const LineScales& at) const;
  /// What readers make of them, in the type of their arithmetic.
  Tensor values(const Tensor& codes, const LineScales& at) const;

  /// A scale times this is the largest magnitude that it is found for: 7.5 of whole numbers of 4 bits, as all programs
  /// have it, since -8 ... 7 rounds -7.5 ... 7.5.
  double reach() const { return reach_; }
  /// Least zero point: 1 where they are stored less one, which readers differ about below.
  int64_t least_zero() const { return least_zero_; }
  int64_t largest_code() const { return largest_code_; }
  /// No code is larger in magnitude, where the largest that its type can hold is in question.
  double largest_number() const { return largest_number_; }
  at::ScalarType type() const { return type_; }
  /// A scale of 0 is for nothing then.
  bool divides_by_scales() const { return kind_ == Kind::kWhole && factor_ == 1; }
  /// Whether scales may be powers of two: some programs keep those of E4M3 in 8 bits, which hold an exponent.
  bool has_exponent_scales() const { return kind_ == Kind::kFloat8 || kind_ == Kind::kFloat4; }

 private:
  enum class Kind { kWhole, kTable, kFloat8, kFloat4 };

  NumberLine() = default;
  Tensor whole_codes(const Tensor& numbers, const LineScales& at) const;
  Tensor float4_codes(const Tensor& numbers, const LineScales& at) const;

  Kind kind_ = Kind::kWhole;
  at::ScalarType type_ = at::kFloat;
  double factor_ = 1;
  double reach_ = 1, largest_number_ = 1;
  int64_t half_ = 128, least_code_ = 0, largest_code_ = 255, least_zero_ = 0;
  Tensor table_ = {};          // [16] f32, by code
  Tensor borders_ = {};        // between the table's numbers in their order
  Tensor code_of_place_ = {};  // u8: in that order
};

}  // namespace lancet
