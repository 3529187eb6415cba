#include "nested_scales.h"

#include <torch/types.h>

#include "numbers/number_tables.h"

namespace lancet {

NestedGrid::NestedGrid(const PackedSpec& spec, const Tensor& places, const Tensor& scales, const Tensor& table)
    : places_(places),
      scales_(scales),
      table_(table),
      block_size_(spec.nested_block_size),
      offset_(static_cast<double>(static_cast<float>(spec.nested_offset))) {
  const auto [sorted, ranks] = table.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  borders_ = (sorted.narrow(0, 0, sorted.size(0) - 1) + sorted.narrow(0, 1, sorted.size(0) - 1)).mul_(0.5);
  place_of_rank_ = ranks.to(at::kByte);
  of_each_ = over_grid(scales_);
}

/// [blocks, numbers of a block] of a grid, the last filled up with 0. The list has all groups of a row together.
Tensor NestedGrid::blocks_of_list(const Tensor& grid) const {
  const Tensor list = grid.transpose(0, 1).flatten();
  return at::constant_pad_nd(list, {0, scales_.size(0) * block_size_ - list.size(0)}, 0).view({-1, block_size_});
}

Tensor NestedGrid::over_grid(const Tensor& blocks) const {
  const Tensor list = blocks.repeat_interleave(block_size_).narrow(0, 0, places_.numel());
  return list.view({places_.size(1), places_.size(0)}).transpose(0, 1);
}

Tensor NestedGrid::read(const Tensor& places, const Tensor& scales) const {
  return table_.index_select(0, places.flatten().to(at::kInt)).view(places.sizes()).mul_(scales).add_(offset_);
}

FoundScales NestedGrid::before() const { return {read(places_, over_grid(scales_)), {}, places_}; }

void NestedGrid::choose(const Tensor& largest, const Tensor& same) {
  const Tensor own = blocks_of_list((largest - offset_).abs_()).amax(1);
  const Tensor differs = blocks_of_list(same.logical_not().to(at::kByte)).amax(1).ne(0);
  scales_ = own.where(differs, scales_);
  of_each_ = over_grid(scales_);
  stayed_ = over_grid(differs.logical_not());
}

FoundScales NestedGrid::nearest(const Tensor& scales, int64_t group) const {
  const Tensor own = of_each_.select(0, group);
  const Tensor numbers = (scales - offset_).div_(own.clamp_min(kLeastDivisor));
  const Tensor places = place_of_rank_.index_select(0, at::bucketize(numbers, borders_, /*out_int32=*/true));
  return {read(places, own), {}, places};
}

}  // namespace lancet
