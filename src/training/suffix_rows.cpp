#include "suffix_rows.h"

#include <torch/types.h>

#include <numeric>

namespace lancet {

int64_t vectors_of(ValueSite site) { return site == ValueSite::kMlpAndAttnOut ? 2 : 1; }

SuffixRows::SuffixRows(const CausalLM& model, const TokenRows& rows, ValueSite site, int64_t layer)
    : site_(site), edited_layer_(layer), first_layer_(first_step_layer(model.config(), site, layer)) {
  const HookPoint held_at = first_layer_ > edited_layer_ ? HookPoint::kBlockIn : HookPoint::kMlpOut;
  RowStates states = run_to_lookups(model, rows, {held_at, first_layer_});
  hidden_1ND_ = states.own_ND.unsqueeze(0);
  pool_ = std::make_shared<KeyValues>(std::move(states.pool));
  layout_.earlier = std::move(states.earlier);
  std::vector<int64_t> positions;
  for (size_t row = 0; row < rows.ids.size(); ++row) {
    const int64_t end = std::ssize(rows.ids[row]);
    layout_.tokens.push_back(end - rows.lookups[row]);
    for (int64_t t = rows.lookups[row]; t < end; ++t) positions.push_back(t);
  }
  positions_1N_ = torch::tensor(positions, torch::kLong).unsqueeze(0);
}

std::vector<int64_t> SuffixRows::first_tokens() const {
  std::vector<int64_t> first(layout_.tokens.size());
  std::exclusive_scan(layout_.tokens.begin(), layout_.tokens.end(), first.begin(), int64_t{0});
  return first;
}

Tensor SuffixRows::lookup_hidden() const {
  return hidden_1ND_.squeeze(0).index_select(0, to_index(first_tokens(), hidden_1ND_.device()));
}

SuffixRows SuffixRows::select(const std::vector<int64_t>& rows) const {
  SuffixRows some;
  some.site_ = site_;
  some.edited_layer_ = edited_layer_;
  some.first_layer_ = first_layer_;
  some.pool_ = pool_;
  const std::vector<int64_t> first = first_tokens();
  std::vector<int64_t> tokens;
  for (const int64_t row : rows) {
    const auto r = static_cast<size_t>(row);
    some.layout_.tokens.push_back(layout_.tokens[r]);
    some.layout_.earlier.push_back(layout_.earlier[r]);
    for (int64_t t = 0; t < layout_.tokens[r]; ++t) tokens.push_back(first[r] + t);
  }
  some.hidden_1ND_ = hidden_1ND_.index_select(1, to_index(tokens, hidden_1ND_.device()));
  some.positions_1N_ = positions_1N_.index_select(1, torch::tensor(tokens, torch::kLong));
  return some;
}

void SuffixRows::read_at(const CausalLM& model, const std::vector<std::vector<int64_t>>& places) {
  const std::vector<int64_t> first = first_tokens();
  std::vector<int64_t> outputs, all_rows(places.size()), read_rows, read_lookups;
  std::iota(all_rows.begin(), all_rows.end(), int64_t{0});
  for (size_t row = 0; row < places.size(); ++row) {
    for (const int64_t place : places[row]) {
      if (place == 0) {
        read_rows.push_back(static_cast<int64_t>(row));
        read_lookups.push_back(std::ssize(outputs));
      }
      outputs.push_back(first[row] + place);
    }
  }
  const at::Device device = hidden_1ND_.device();
  among_tokens_ = {to_index(all_rows, device), to_index(first, device)};
  among_outputs_ = {to_index(read_rows, device), to_index(read_lookups, device)};
  outputs_1O_ = torch::tensor(outputs, torch::kLong).unsqueeze(0);
  pass_ = model.prepare_pass(sequence(), {first_layer_, model.config().n_layers});
}

SequenceInfo SuffixRows::sequence() const {
  SequenceInfo sequence;
  sequence.lengths = {positions_1N_.size(1)};
  sequence.positions_BT = positions_1N_;
  sequence.outputs_BO = outputs_1O_;
  sequence.ragged = &layout_;
  if (!pool_->empty()) sequence.prefix = pool_.get();
  sequence.prepared = pass_.get();
  return sequence;
}

Tensor SuffixRows::moved(const Tensor& value_1ND, const Tensor& added_RD, const LookupPlaces& lookups) const {
  const auto here = [&](const Tensor& index) { return index.to(value_1ND.device()); };
  const Tensor place_X = here(lookups.place_X);
  const Tensor added_XD = added_RD.index_select(0, here(lookups.row_X)).to(value_1ND.scalar_type());
  return value_1ND.index_copy(1, place_X, value_1ND.index_select(1, place_X) + added_XD);
}

Tensor SuffixRows::run(const CausalLM& model, const Tensor& added_RX) const {
  const LayerRange above{first_layer_, model.config().n_layers};
  // the MLP's output is then a term of the layer's, so both sites are moved there
  if (first_layer_ > edited_layer_)
    return model.run_layers(moved(hidden_1ND_, added_RX, among_tokens_), sequence(), above).squeeze(0);
  const std::vector<Tensor> added = added_RX.chunk(vectors_of(site_), 1);
  // the last layer of all computes the outputs alone
  const LookupPlaces& lookups = first_layer_ + 1 == above.end ? among_outputs_ : among_tokens_;
  HookSet hooks;
  hooks.replace({HookPoint::kMlpOut, first_layer_}, [&](const Tensor& x) { return moved(x, added[0], lookups); });
  if (added.size() > 1)
    hooks.replace({HookPoint::kAttnOut, first_layer_}, [&](const Tensor& x) { return moved(x, added[1], lookups); });
  return model.run_layers(hidden_1ND_, sequence(), above, hooks).squeeze(0);
}

}  // namespace lancet
