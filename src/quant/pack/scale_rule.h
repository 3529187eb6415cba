// How a scale and a zero point are found of the numbers that share them.
#pragma once

#include <functional>

#include "lancet/quant/pack.h"
#include "numbers/number_line.h"

namespace lancet {

/// Scales and zero points of some groups, each [groups ..., scale rows] f32.
struct FoundScales {
  Tensor scales = {};  ///< scales as readers get them
  Tensor zeros = {};   ///< undefined: none are stored
  Tensor places = {};  ///< places of scales in the table of nested ones, u8; undefined: they are not nested

  template <typename Scales, typename Act>
  static void for_each(Scales& scales, const Act& act) {
    for (auto* tensor : {&scales.scales, &scales.zeros, &scales.places})
      if (tensor->defined()) act(*tensor);
  }
};

/// What a file keeps of scales [scale rows] that are given in full precision.
using StoreScales = std::function<FoundScales(const Tensor& scales)>;

/// Which scales a file can have.
struct ScaleKind {
  at::ScalarType type = at::kFloat;
  bool is_power_of_two = false;  ///< some programs keep E4M3's scales in 8 bits, which hold an exponent
};

class ScaleRule {
 public:
  ScaleRule(const NumberLine& line, const PackedSpec& spec, ScaleKind kind, ScaleChoice choice);

  /// `scales` as the file keeps them, rounded to its type (to a power of two: up); whole numbers have none of 0.
  FoundScales stored(const Tensor& scales) const;
  /// Finds the scale of one group: `numbers` [n, rows] f32, `importance` of each, of a shape that spreads over them.
  FoundScales find(const Tensor& numbers, const Tensor& importance, const StoreScales& store) const;

  /// [rows] of scales' [scale rows]; [n, rows] of [n, scale rows].
  Tensor over_rows(const Tensor& values, int64_t rows) const;
  /// [scale rows] where all of a [rows] of truths are true.
  Tensor all_of_scale(const Tensor& truths) const;

 private:
  FoundScales scaled(const Tensor& least, const Tensor& most, double part, const StoreScales& store) const;
  Tensor by_scale(const Tensor& values) const;

  const NumberLine& line_;
  bool has_free_zeros_, stores_zeros_;
  double least_scale_ = 0;  // in the place of 0; 0: that is fine
  ScaleKind kind_;
  ScaleChoice choice_;
  int64_t rows_of_scale_;
};

/// `chosen` where `where` [scale rows] is true, else `other`.
FoundScales merged(const Tensor& where, const FoundScales& chosen, const FoundScales& other);

}  // namespace lancet
