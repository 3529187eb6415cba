// The scales of a matrix while it is packed: found group by group, or all in advance.
#pragma once

#include <optional>

#include "nested_scales.h"
#include "stored_parts.h"

namespace lancet {

/// What a group's scales are found of: numbers [n, rows] f32, and the same of the matrix that the file has (undefined:
/// of none).
struct GroupNumbers {
  Tensor numbers = {};
  Tensor before = {};
};

class ScaleGrid {
 public:
  /// `importance` [in] f32: of each column.
  ScaleGrid(const ScaleLayout& layout, const ScaleRule& rule, FoundScales before, std::optional<NestedGrid> nested,
            const Tensor& importance);

  /// What can only be found of the whole matrix: `weight`, and the file's, [out, in] f32 or f64.
  void prepare(const Tensor& weight, const Tensor& before);
  /// Finds the scales of the group that begins with `column`, where is_by_columns().
  void find(int64_t column, const GroupNumbers& numbers);
  /// Scales of `n` columns from `column` on: [n or 1, rows].
  LineScales of_columns(int64_t column, int64_t n) const;
  bool is_by_columns() const { return layout_.is_by_columns(); }
  /// First column of the group that a column belongs to, where that is so.
  int64_t group_begin(int64_t column) const { return column / layout_.columns_of_scale * layout_.columns_of_scale; }
  int64_t group_end(int64_t column) const;

  const FoundScales& found() const { return found_; }
  const std::optional<NestedGrid>& nested() const { return nested_; }

 private:
  void find_group(int64_t group, const GroupNumbers& numbers, const Tensor& importance);
  void find_ordered(const Tensor& weight, const Tensor& before);
  void find_flat(const Tensor& weight, const Tensor& before);
  void choose_nested(const Tensor& weight, const Tensor& before);
  GroupNumbers blocks_of_flat(const Tensor& weight, const Tensor& before) const;
  Tensor scale_places(int64_t column, int64_t n) const;

  ScaleLayout layout_;
  const ScaleRule& rule_;
  FoundScales before_, found_;
  std::optional<NestedGrid> nested_;
  Tensor importance_;
  Tensor order_;  // of the layout, [columns] i64
};

/// [n, rows] f32 of `n` columns of a matrix [rows, columns]; undefined of an undefined one.
Tensor columns_of(const Tensor& matrix, int64_t column, int64_t n);

}  // namespace lancet
