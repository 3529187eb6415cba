// From the tensors of a file to a packed matrix: what all formats have in common. A format puts codes, scales and zero
// points in their places; here they are checked.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "measured.h"
#include "packed_numbers.h"
#include "words.h"

namespace lancet {

/// What a format does when numbers that it had measured are known: completes the codes, and returns the largest
/// magnitude that a number has before it is scaled.
using SettleCodes = std::function<double()>;

/// Zero points of whole numbers, with the places of their extremes among what is measured.
struct MeasuredZeros {
  Tensor zeros = {};  ///< [scale rows, scale columns] u8; undefined: there are none
  size_t least = 0, most = 0;
};

class Assembly {
 public:
  /// Takes what PackedMatrix::assemble() is given, which outlives it.
  Assembly(const PackedSpec& spec, std::span<const Tensor> parts);
  /// Has the format do its part, and checks the numbers. Waits once. Throws: as PackedMatrix::assemble().
  PackedNumbers finish();

  const PackedSpec& spec() const { return spec_; }
  /// The tensor with that role; undefined: there is none.
  Tensor part(PartRole role) const;
  /// Adds "TENSOR: what" to what is wrong with the file.
  void problem(PartRole role, std::string_view what);
  /// What is made. Name, size, bits and block are in it.
  PackedNumbers& numbers() { return numbers_; }
  /// What is measured of the numbers. It has values where SettleCodes is called, not before.
  Measured& measured() { return measured_; }

  /// Takes scales that lie as the matrix does and are used as they are stored; computed in `type`.
  void take_scales(at::ScalarType type);
  /// Takes scales where outputs come last, [groups, rows]; computed in their own type.
  void take_scales_of_outputs();
  /// Takes whole numbers of 2, 3, 4 or 8 bits: rows of bytes [rows, bytes], low bits first.
  void take_whole_codes(const Tensor& rows);
  /// Measures `zeros` [groups, scale rows] u8, which settle_whole() may take then.
  MeasuredZeros measure_zeros(const Tensor& zeros);
  /// Takes the group of each column, where the file has it. Groups that lie in turn are dropped, and others are
  /// checked, after SettleCodes.
  void take_order();
  /// The least group in the order that was taken; for SettleCodes.
  double least_group() const { return measured_.value(least_group_); }

  // what SettleCodes consists of

  /// Makes the table of whole numbers of 4 bits, or a constant of zero points that are all the same. Returns the
  /// largest magnitude.
  double settle_whole(const MeasuredZeros& zeros);
  /// Makes the table of pairs of 4 bits: `values` of the 16 codes.
  void set_pairs(std::span<const float> values, PairOrder order);

 private:
  PackedNumbers finish_blocks(double largest);
  void settle_order();
  size_t measure_scales();
  void check_scales(size_t place, double largest_code);

  const PackedSpec& spec_;
  std::span<const Tensor> parts_;
  PackedNumbers numbers_;
  Measured measured_;
  std::vector<std::string> problems_;
  size_t nested_table_ = 0, in_turn_ = 0, least_group_ = 0, most_group_ = 0;
};

}  // namespace lancet
