#include "lancet/models/sequence_info.h"

#include <torch/types.h>
#include <algorithm>
#include <unordered_map>

namespace lancet {

TokenBatch make_batch(std::span<const std::vector<TokenId>> rows) {
  int64_t width = 0;
  for (const auto& row : rows) width = std::max(width, static_cast<int64_t>(row.size()));
  const int64_t n_rows = static_cast<int64_t>(rows.size());
  TokenBatch batch;
  batch.ids_BT = torch::zeros({n_rows, width}, torch::kLong);
  int64_t* ids = batch.ids_BT.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), ids + static_cast<int64_t>(i) * width);
    batch.sequence.lengths.push_back(static_cast<int64_t>(rows[i].size()));
  }
  batch.sequence.positions_BT = torch::arange(width).expand({n_rows, width});
  return batch;
}

TokenBatch make_packed_batch(std::span<const std::span<const TokenId>> documents) {
  TokenBatch batch;
  std::vector<int64_t> ids, positions, places, first;
  // the key is the previous token (-1: none) and the id, which is below 2^32
  std::unordered_map<int64_t, int64_t> tokens;
  for (const std::span<const TokenId> document : documents) {
    const int64_t length = static_cast<int64_t>(document.size());
    int64_t token = -1;
    for (int64_t t = 0; t < length; ++t) {
      const TokenId id = document[static_cast<size_t>(t)];
      const auto [at, is_new] = tokens.try_emplace((token + 1) << 32 | id, static_cast<int64_t>(ids.size()));
      token = at->second;
      if (is_new) {
        ids.push_back(id);
        positions.push_back(t);
        first.push_back(static_cast<int64_t>(places.size()));
      }
      places.push_back(token);
    }
    std::vector<DocumentRun>& runs = batch.sequence.packed;
    if (runs.empty() || runs.back().tokens != length) runs.push_back({0, length});
    ++runs.back().documents;
  }
  batch.ids_BT = torch::tensor(ids, torch::kLong).unsqueeze(0);
  batch.sequence.positions_BT = torch::tensor(positions, torch::kLong).unsqueeze(0);
  batch.sequence.lengths = {static_cast<int64_t>(ids.size())};
  if (ids.size() < places.size()) {
    batch.sequence.places_P = torch::tensor(places, torch::kLong);
    batch.sequence.first_T = torch::tensor(first, torch::kLong);
  }
  return batch;
}

Tensor token_counts(const SequenceInfo& sequence) {
  return sequence.places_P.defined() ? sequence.places_P.bincount({}, sequence.first_T.size(0)) : Tensor();
}

Tensor valid_tokens(const SequenceInfo& sequence) {
  const Tensor lengths = torch::tensor(sequence.lengths, torch::kLong);
  return torch::arange(sequence.positions_BT.size(1)).unsqueeze(0) < lengths.unsqueeze(1);
}

int64_t positions_seen(const SequenceInfo& sequence) {
  const Tensor& positions_BT = sequence.positions_BT;
  if (positions_BT.numel() == 0) return 0;
  return positions_BT.masked_fill(valid_tokens(sequence).logical_not(), 0).max().item<int64_t>() + 1;
}

Tensor positions_before(const SequenceInfo& sequence) {
  if (sequence.prefix == nullptr || sequence.prefix->empty())
    return torch::zeros({sequence.positions_BT.size(0), 1}, torch::kLong);
  if (sequence.ragged == nullptr) return sequence.prefix->valid_BP().sum(1, /*keepdim=*/true);
  std::vector<int64_t> before;
  for (size_t row = 0; row < sequence.ragged->tokens.size(); ++row)
    before.insert(before.end(), static_cast<size_t>(sequence.ragged->tokens[row]),
                  std::ssize(sequence.ragged->earlier[row]));
  return torch::tensor(before, torch::kLong).unsqueeze(0);
}

Tensor positions_reached(const SequenceInfo& sequence) {
  if (sequence.ragged == nullptr)
    return sequence.positions_BT.masked_fill(valid_tokens(sequence).logical_not(), 0).amax(1, /*keepdim=*/true) + 1;
  std::vector<int64_t> own;
  for (const int64_t tokens : sequence.ragged->tokens) own.insert(own.end(), static_cast<size_t>(tokens), tokens);
  return positions_before(sequence) + torch::tensor(own, torch::kLong);
}

Tensor attention_mask(const SequenceInfo& sequence, int64_t window) {
  const Tensor& positions_BT = sequence.positions_BT;
  const int64_t n_rows = positions_BT.size(0), width = positions_BT.size(1);
  if (!sequence.packed.empty() || sequence.ragged != nullptr) return {};  // each document or row has its own mask
  const bool has_prefix = sequence.prefix != nullptr;
  const bool slides = window > 0 && positions_seen(sequence) > window;
  if (!has_prefix && !slides) return {};  // padding is on the right, where no real token sees it
  Tensor own = torch::ones({width, width}, torch::kBool).tril().unsqueeze(0).expand({n_rows, width, width});
  Tensor places_BS = positions_BT;  // positions of the tokens that may be attended to
  if (has_prefix && !sequence.prefix->empty()) {
    const Tensor valid_BP = sequence.prefix->valid_BP();
    own = torch::cat({valid_BP.unsqueeze(1).expand({n_rows, width, valid_BP.size(1)}), own}, 2);
    places_BS = torch::cat({valid_BP.cumsum(1) - 1, positions_BT}, 1);
  }
  if (slides) own = own & (positions_BT.unsqueeze(2) - places_BS.unsqueeze(1) < window);
  return own.unsqueeze(1).contiguous();
}

namespace {

/// Copies `fresh` behind the first `filled` positions of `room`'s dimension `dim`. If necessary `room` is made longer:
/// to `wanted`, or exactly as long as needed.
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

/// Copies `room`'s rows `from[i]` to rows `to[i]`, and then keeps only the first `n_rows` rows.
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
