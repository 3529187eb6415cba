#include "scale_grid.h"

#include <torch/types.h>

#include <algorithm>

namespace lancet {
namespace {

Tensor as_floats(const Tensor& columns) { return columns.transpose(0, 1).to(at::kFloat).contiguous(); }

Tensor columns_at(const Tensor& matrix, const Tensor& places) {
  return matrix.defined() ? as_floats(matrix.index_select(1, places)) : Tensor();
}

/// [block, blocks] f32 of the flattened matrix, the last block filled up with 0.
Tensor flat_blocks(const Tensor& matrix, int64_t block) {
  if (!matrix.defined()) return {};
  const Tensor flat = matrix.to(at::kFloat).flatten();
  const int64_t rest = blocks_of(flat.size(0), block) * block - flat.size(0);
  return at::constant_pad_nd(flat, {0, rest}, 0).view({-1, block}).transpose(0, 1).contiguous();
}

Tensor same_of(const GroupNumbers& numbers) {
  if (!numbers.before.defined())
    return torch::zeros({numbers.numbers.size(1)}, numbers.numbers.options().dtype(at::kBool));
  return numbers.numbers.eq(numbers.before).all(0);
}

}  // namespace

Tensor columns_of(const Tensor& matrix, int64_t column, int64_t n) {
  return matrix.defined() ? as_floats(matrix.narrow(1, column, n)) : Tensor();
}

ScaleGrid::ScaleGrid(const ScaleLayout& layout, const ScaleRule& rule, FoundScales before,
                     std::optional<NestedGrid> nested, const Tensor& importance)
    : layout_(layout),
      rule_(rule),
      before_(nested ? nested->before() : std::move(before)),
      nested_(std::move(nested)),
      importance_(importance) {
  found_ = before_;
  FoundScales::for_each(found_, [](Tensor& tensor) { tensor = tensor.clone(at::MemoryFormat::Contiguous); });
  if (!layout_.order.empty()) order_ = to_index(layout_.order, importance.device());
}

int64_t ScaleGrid::group_end(int64_t column) const {
  return std::min(layout_.columns, (column / layout_.columns_of_scale + 1) * layout_.columns_of_scale);
}

void ScaleGrid::find_group(int64_t group, const GroupNumbers& numbers, const Tensor& importance) {
  const FoundScales found = rule_.find(numbers.numbers, importance, [&](const Tensor& scales) {
    return nested_ ? nested_->nearest(scales, group) : rule_.stored(scales);
  });
  FoundScales chosen = found;
  if (numbers.before.defined()) {
    Tensor stays = rule_.all_of_scale(same_of(numbers));
    if (nested_) stays = stays.logical_and(nested_->stayed(group));
    FoundScales old = before_;
    FoundScales::for_each(old, [&](Tensor& tensor) { tensor = tensor.select(0, group); });
    chosen = merged(stays, old, found);
  }
  const auto keep = [&](const Tensor& to, const Tensor& from) {
    if (to.defined()) to.select(0, group).copy_(from);
  };
  keep(found_.scales, chosen.scales);
  keep(found_.zeros, chosen.zeros);
  keep(found_.places, chosen.places);
}

void ScaleGrid::find(int64_t column, const GroupNumbers& numbers) {
  const int64_t n = numbers.numbers.size(0);
  find_group(column / layout_.columns_of_scale, numbers, importance_.narrow(0, column, n).unsqueeze(1));
}

void ScaleGrid::find_ordered(const Tensor& weight, const Tensor& before) {
  for (int64_t group = 0; group < layout_.groups(); ++group) {
    std::vector<int64_t> columns;
    for (int64_t column = 0; column < layout_.columns; ++column)
      if (layout_.order[static_cast<size_t>(column)] == group) columns.push_back(column);
    if (columns.empty()) continue;  // its scales are nobody's and stay
    const Tensor places = to_index(columns, weight.device());
    find_group(group, {columns_at(weight, places), columns_at(before, places)},
               importance_.index_select(0, places).unsqueeze(1));
  }
}

GroupNumbers ScaleGrid::blocks_of_flat(const Tensor& weight, const Tensor& before) const {
  return {flat_blocks(weight, layout_.flat_block), flat_blocks(before, layout_.flat_block)};
}

void ScaleGrid::find_flat(const Tensor& weight, const Tensor& before) {
  const Tensor importance = importance_.unsqueeze(0).expand({layout_.rows, layout_.columns});
  find_group(0, blocks_of_flat(weight, before), flat_blocks(importance, layout_.flat_block));
}

void ScaleGrid::choose_nested(const Tensor& weight, const Tensor& before) {
  std::vector<Tensor> largest, same;
  const auto add = [&](const GroupNumbers& numbers) {
    largest.push_back(numbers.numbers.abs().amax(0));
    same.push_back(same_of(numbers));
  };
  if (layout_.flat_block > 0) {
    add(blocks_of_flat(weight, before));
  } else {
    for (int64_t column = 0; column < layout_.columns; column = group_end(column)) {
      const int64_t n = group_end(column) - column;
      add({columns_of(weight, column, n), columns_of(before, column, n)});
    }
  }
  nested_->choose(torch::stack(largest), torch::stack(same));
}

void ScaleGrid::prepare(const Tensor& weight, const Tensor& before) {
  if (nested_) choose_nested(weight, before);
  if (!layout_.order.empty()) find_ordered(weight, before);
  if (layout_.flat_block > 0) find_flat(weight, before);
}

/// Which scale of the list each number of `n` columns has, [n, rows].
Tensor ScaleGrid::scale_places(int64_t column, int64_t n) const {
  const auto options = torch::TensorOptions(at::kLong).device(importance_.device());
  const Tensor rows = torch::arange(layout_.rows, options).mul_(layout_.columns);
  return torch::arange(column, column + n, options).unsqueeze(1).add(rows).div_(layout_.flat_block, "floor");
}

LineScales ScaleGrid::of_columns(int64_t column, int64_t n) const {
  if (layout_.flat_block > 0) return {found_.scales.take(scale_places(column, n)), {}};
  const auto spread = [&](const Tensor& grid) {
    if (!grid.defined()) return Tensor();
    const int64_t group = column / layout_.columns_of_scale;
    const Tensor rows = order_.defined() ? grid.index_select(0, order_.narrow(0, column, n)) : grid.narrow(0, group, 1);
    return rule_.over_rows(rows, layout_.rows);
  };
  return {spread(found_.scales), spread(found_.zeros)};
}

}  // namespace lancet
