// bitsandbytes' scales of scales: a scale is an offset and a number of the file's table times the scale of its block.
#pragma once

#include "scale_rule.h"

namespace lancet {

class NestedGrid {
 public:
  /// Takes what a file has: `places` [groups, scale rows] u8 and `scales` [blocks] f32, the scales' own; `table` [256]
  /// f32.
  NestedGrid(const PackedSpec& spec, const Tensor& places, const Tensor& scales, const Tensor& table);

  /// What the file has now.
  FoundScales before() const;
  /// Finds the scales' own scales for `largest`, [groups, scale rows] f32. They stay as they are where all of a block
  /// is the same as before: `same`, likewise.
  void choose(const Tensor& largest, const Tensor& same);
  /// Whether a scale of the group lies in a block that stayed: [scale rows].
  Tensor stayed(int64_t group) const { return stayed_.select(0, group); }
  /// The nearest to `scales` [scale rows] of a group that there is.
  FoundScales nearest(const Tensor& scales, int64_t group) const;

  /// [blocks] f32.
  const Tensor& scales() const { return scales_; }

 private:
  Tensor blocks_of_list(const Tensor& grid) const;
  Tensor over_grid(const Tensor& blocks) const;
  Tensor read(const Tensor& places, const Tensor& scales) const;

  Tensor places_, scales_, table_;
  Tensor borders_, place_of_rank_;  // of the table in the order of its numbers
  Tensor of_each_, stayed_;         // [groups, scale rows]: the scale's own scale; whether it is the file's
  int64_t block_size_;
  double offset_;
};

}  // namespace lancet
