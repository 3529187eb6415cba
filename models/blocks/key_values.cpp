#include "lancet/models/key_values.h"

#include <torch/types.h>

#include <algorithm>

namespace lancet {
namespace {

/// Puts `fresh` after the first `filled` positions of `room`'s dimension `dim`, which is made longer where that is
/// needed: to `wanted`, or exactly as long as it takes.
void put_after(Tensor& room, const Tensor& fresh, int64_t dim, int64_t filled, int64_t wanted) {
  const int64_t after = filled + fresh.size(dim);
  if (!room.defined() || room.size(dim) < after) {
    std::vector<int64_t> sizes = fresh.sizes().vec();
    sizes[static_cast<size_t>(dim)] = std::max(after, wanted);
    const Tensor longer = at::empty(sizes, fresh.options());
    if (filled > 0) longer.narrow(dim, 0, filled).copy_(room.narrow(dim, 0, filled));
    room = longer;
  }
  room.narrow(dim, filled, fresh.size(dim)).copy_(fresh);
}

/// `room`'s first rows become rows `from[i]` at `to[i]`; only `n_rows` of them are left.
void move_rows(Tensor& room, int64_t n_rows, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  if (!room.defined()) return;
  if (!to.empty())
    room.index_copy_(0, to_index(to, room.device()), room.index_select(0, to_index(from, room.device())));
  room = room.narrow(0, 0, n_rows);
}

}  // namespace

Tensor KeyValues::valid_BP() const { return empty() ? Tensor() : valid_BR_.narrow(1, 0, positions_); }

KeyValuePair KeyValues::layer(int64_t layer) const {
  return layer < std::ssize(layers_) ? pair_of(layers_[static_cast<size_t>(layer)].attended) : KeyValuePair();
}

KeyValuePair KeyValues::mixer_tokens(int64_t layer) const {
  return layer < std::ssize(layers_) ? pair_of(layers_[static_cast<size_t>(layer)].mixed) : KeyValuePair();
}

KeyValuePair KeyValues::pair_of(const Kept& kept) {
  if (!kept.room_BKRC.key.defined()) return {};
  return {kept.room_BKRC.key.narrow(2, 0, kept.positions), kept.room_BKRC.value.narrow(2, 0, kept.positions)};
}

KeyValues::Layer& KeyValues::place_of(int64_t layer) {
  if (layer >= static_cast<int64_t>(layers_.size())) layers_.resize(static_cast<size_t>(layer) + 1);
  return layers_[static_cast<size_t>(layer)];
}

void KeyValues::record_state(int64_t layer, MixerState state) { place_of(layer).state = std::move(state); }

void KeyValues::append(Kept& kept, const KeyValuePair& fresh_BTKC) const {
  const torch::NoGradGuard no_grad;
  put_after(kept.room_BKRC.key, fresh_BTKC.key.detach().transpose(1, 2), 2, kept.positions, room_);
  put_after(kept.room_BKRC.value, fresh_BTKC.value.detach().transpose(1, 2), 2, kept.positions, room_);
  kept.positions += fresh_BTKC.key.size(1);
}

void KeyValues::end_pass(const Tensor& valid_BT) {
  put_after(valid_BR_, valid_BT, 1, positions_, room_);
  positions_ += valid_BT.size(1);
}

KeyValues KeyValues::select(const std::vector<int64_t>& places) const {
  const auto take = [&](const Tensor& room) {
    return room.defined() ? room.index_select(0, to_index(places, room.device())) : Tensor();
  };
  KeyValues some = *this;
  some.valid_BR_ = take(valid_BR_);
  for (Layer& kept : some.layers_) {
    for (Kept* part : {&kept.attended, &kept.mixed})
      part->room_BKRC = {take(part->room_BKRC.key), take(part->room_BKRC.value)};
    kept.state = {take(kept.state.state_RHKV), take(kept.state.tail_RXC)};
  }
  return some;
}

void KeyValues::keep(const std::vector<int64_t>& places) {
  std::vector<int64_t> from, to;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] == static_cast<int64_t>(i)) continue;
    from.push_back(places[i]);
    to.push_back(static_cast<int64_t>(i));
  }
  const auto n_rows = static_cast<int64_t>(places.size());
  const torch::NoGradGuard no_grad;
  move_rows(valid_BR_, n_rows, from, to);
  for (Layer& kept : layers_) {
    for (Kept* part : {&kept.attended, &kept.mixed}) {
      move_rows(part->room_BKRC.key, n_rows, from, to);
      move_rows(part->room_BKRC.value, n_rows, from, to);
    }
    move_rows(kept.state.state_RHKV, n_rows, from, to);
    move_rows(kept.state.tail_RXC, n_rows, from, to);
  }
}

}  // namespace lancet
