// Which numbers a format has between two scales' steps: codes of numbers, and the numbers that readers make of codes.
#pragma once

#include "lancet/quant_scheme/packed_spec.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Scales as readers get them, and zero points; of shapes that spread over the numbers'.
struct LineScales {
  Tensor scales = {};  ///< f32
  Tensor zeros = {};   ///< f32; undefined: the half of the range
};

class NumberLine {
 public:
  /// `scale_type`: that the file has scales in.
  NumberLine(const PackedSpec& spec, at::ScalarType scale_type, at::Device device);

  /// Codes, u8, of the numbers nearest to `numbers`, f32. E4M3 as its bits; whole numbers without a sign.
  Tensor codes(const Tensor& numbers, const LineScales& at) const;
  /// What readers make of them, in the type of their arithmetic.
  Tensor values(const Tensor& codes, const LineScales& at) const;

  /// A scale times this is the largest magnitude that it is found for: 7.5 of whole numbers of 4 bits, as all programs
  /// have it, since -8 ... 7 rounds -7.5 ... 7.5.
  double reach() const { return reach_; }
  /// Of zero points. 1 where they are stored less one, which readers differ about below.
  int64_t least_zero() const { return least_zero_; }
  int64_t largest_code() const { return largest_code_; }
  /// No code is larger in magnitude, where the largest that its type can hold is in question.
  double largest_number() const { return largest_number_; }
  at::ScalarType type() const { return type_; }
  /// A scale of 0 is for nothing then.
  bool divides_by_scales() const { return kind_ == Kind::kWhole && factor_ == 1; }

 private:
  enum class Kind { kWhole, kTable, kFloat8 };

  Tensor whole_codes(const Tensor& numbers, const LineScales& at) const;

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
