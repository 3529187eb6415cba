#include "row_states.h"

#include <torch/types.h>
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>

#include "lancet/models/batching.h"

namespace lancet {
namespace {

using Document = std::span<const TokenId>;

/// A pack of some whole rows, and of their texts before the lookup tokens, each text only once.
class RowPack {
 public:
  RowPack(const TokenRows& rows, std::vector<int64_t> members)
      : rows_(rows), members_(std::move(members)), whole_(whole_documents()), before_(documents_before()) {}

  /// Returns the number of tokens before the lookup tokens.
  int64_t n_before() const { return before_ ? before_->size() : 0; }

  /// Puts the rows' states into `states` (with its pool) and `own_parts`, in the order of the members.
  void run(const CausalLM& model, HookSite first, RowStates& states, std::vector<Tensor>& own_parts) const {
    const Tensor hidden_1TD = model.run_layers(model.embed(whole_.batch.ids_BT, whole_.batch.sequence),
                                               whole_.batch.sequence, {0, first.layer});
    std::vector<int64_t> own;
    for (size_t i = 0; i < members_.size(); ++i)
      own.insert(own.end(), whole_.tokens[i].begin() + lookup(i), whole_.tokens[i].end());
    own_parts.push_back(hidden_1TD.squeeze(0).index_select(0, to_index(own, hidden_1TD.device())));
    const LayerRange above{first.layer, model.config().n_layers};
    if (!before_ || above.begin == above.end) return;
    note_places(states);
    SequenceInfo sequence = before_->batch.sequence;
    sequence.record = &states.pool;
    sequence.outputs_BO = torch::zeros({1, 1}, torch::kLong);  // only keys and values of the last layer are needed
    HookSet hooks;
    hooks.stop_at({HookPoint::kAttnOut, above.end - 1});
    const HeldPlaces held = held_places();
    if (!held.tokens.empty()) hooks.replace(first, [&](const Tensor& value_1TD) { return held.added_to(value_1TD); });
    model.run_layers(hidden_1TD.index_select(1, to_index(whole_tokens_before(), hidden_1TD.device())), sequence, above,
                     hooks);
  }

  const std::vector<int64_t>& members() const { return members_; }

 private:
  const std::vector<TokenId>& ids(size_t member) const { return rows_.ids[static_cast<size_t>(members_[member])]; }
  int64_t lookup(size_t member) const { return rows_.lookups[static_cast<size_t>(members_[member])]; }

  /// The tokens before the lookup tokens at which deltas are held, and these deltas.
  struct HeldPlaces {
    std::vector<int64_t> tokens;
    Tensor delta_XD;  ///< f64, host

    Tensor added_to(const Tensor& value_1TD) const {
      const Tensor place_X = to_index(tokens, value_1TD.device());
      const Tensor added_XD = delta_XD.to(value_1TD.device()).to(value_1TD.scalar_type());
      return value_1TD.index_copy(1, place_X, value_1TD.index_select(1, place_X) + added_XD);
    }
  };

  HeldPlaces held_places() const {
    std::map<int64_t, std::span<const double>> by_token;
    for (size_t i = 0; i < members_.size(); ++i)
      for (const HeldValue& held : rows_.held[static_cast<size_t>(members_[i])]) {
        const std::vector<int64_t>& tokens = before_->tokens[static_cast<size_t>(document_of_[i])];
        by_token[tokens[static_cast<size_t>(lookup(i) - held.tokens_before)]] = held.delta_D;
      }
    HeldPlaces places;
    std::vector<Tensor> deltas;
    for (const auto& [token, delta_D] : by_token) {
      places.tokens.push_back(token);
      deltas.push_back(torch::tensor(at::ArrayRef<double>(delta_D.data(), delta_D.size()), torch::kDouble));
    }
    if (!deltas.empty()) places.delta_XD = torch::stack(deltas);
    return places;
  }

  std::vector<Document> whole_documents() const {
    std::vector<Document> documents;
    for (size_t i = 0; i < members_.size(); ++i) documents.emplace_back(ids(i));
    return documents;
  }

  /// Returns the texts before the lookup tokens, sorted by length. Equal texts end with the same token of the pack.
  std::optional<PackedDocumentBatch> documents_before() {
    std::vector<size_t> order(members_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t i) { return lookup(i); });
    std::unordered_map<int64_t, int64_t> by_last_token;
    std::vector<Document> documents;
    document_of_.assign(members_.size(), -1);
    for (const size_t i : order) {
      if (lookup(i) == 0) continue;
      const auto [at, is_new] =
          by_last_token.try_emplace(whole_.tokens[i][static_cast<size_t>(lookup(i)) - 1], std::ssize(documents));
      document_of_[i] = at->second;
      if (is_new) documents.push_back(Document(ids(i)).first(static_cast<size_t>(lookup(i))));
    }
    if (documents.empty()) return std::nullopt;
    return PackedDocumentBatch(documents);
  }

  /// Returns, for each token before the lookup tokens, its index among the tokens of the whole rows.
  std::vector<int64_t> whole_tokens_before() const {
    std::vector<int64_t> from(static_cast<size_t>(before_->size()));
    for (size_t i = 0; i < members_.size(); ++i) {
      if (document_of_[i] < 0) continue;
      const std::vector<int64_t>& tokens = before_->tokens[static_cast<size_t>(document_of_[i])];
      for (size_t t = 0; t < tokens.size(); ++t) from[static_cast<size_t>(tokens[t])] = whole_.tokens[i][t];
    }
    return from;
  }

  /// Notes the places of each row in the pool, to which this pack's tokens are added next.
  void note_places(RowStates& states) const {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (document_of_[i] < 0) continue;
      for (const int64_t token : before_->tokens[static_cast<size_t>(document_of_[i])])
        states.earlier[static_cast<size_t>(members_[i])].push_back(states.pool.positions() + token);
    }
  }

  const TokenRows& rows_;
  std::vector<int64_t> members_;
  PackedDocumentBatch whole_;
  std::vector<int64_t> document_of_;  ///< each member's text before the lookup token; -1 if it has none
  std::optional<PackedDocumentBatch> before_;
};

/// Sorts states from the order of packs and rows into the rows' own order.
Tensor in_row_order(const std::vector<Tensor>& parts, const std::vector<RowPack>& packs, const TokenRows& rows) {
  std::vector<std::vector<int64_t>> places(rows.ids.size());
  int64_t place = 0;
  for (const RowPack& pack : packs)
    for (const int64_t row : pack.members())
      for (int64_t t = rows.lookups[static_cast<size_t>(row)]; t < std::ssize(rows.ids[static_cast<size_t>(row)]); ++t)
        places[static_cast<size_t>(row)].push_back(place++);
  std::vector<int64_t> order;
  for (const std::vector<int64_t>& row : places) order.insert(order.end(), row.begin(), row.end());
  const Tensor all_ND = torch::cat(parts);
  return all_ND.index_select(0, to_index(order, all_ND.device()));
}

/// Whether both rows begin with a common token at which their deltas differ.
bool are_at_odds(const TokenRows& rows, size_t one, size_t other) {
  const bool hold_the_same = rows.held[one].data() == rows.held[other].data();
  if (hold_the_same && (rows.held[one].empty() || rows.lookups[one] == rows.lookups[other])) return false;
  const auto common = std::ranges::mismatch(rows.ids[one], rows.ids[other]).in1 - rows.ids[one].begin();
  const auto begins_before = [&](size_t row) {
    return std::ranges::any_of(rows.held[row],
                               [&](const HeldValue& held) { return rows.lookups[row] - held.tokens_before < common; });
  };
  return begins_before(one) || begins_before(other);
}

/// Splits the rows into as few parts as possible, so that all rows of a part can share their common beginnings.
std::vector<std::vector<int64_t>> parts_at_peace(const TokenRows& rows) {
  std::vector<std::vector<int64_t>> parts(1);
  for (size_t row = 0; row < rows.ids.size(); ++row) {
    const auto takes = [&](const std::vector<int64_t>& part) {
      return std::ranges::none_of(part,
                                  [&](int64_t other) { return are_at_odds(rows, row, static_cast<size_t>(other)); });
    };
    auto part = std::ranges::find_if(parts, takes);
    if (part == parts.end()) part = parts.emplace(parts.end());
    part->push_back(static_cast<int64_t>(row));
  }
  return parts;
}

std::vector<std::vector<int64_t>> plan_row_packs(const CausalLM& model, const TokenRows& rows) {
  const int64_t longest = longest_usual_text(model.config());
  if (std::ranges::all_of(rows.held, [](std::span<const HeldValue> held) { return held.empty(); }))
    return plan_packs(rows.ids, kForwardTokens, longest);  // avoids comparing each row with all others
  std::vector<std::vector<int64_t>> packs;
  for (const std::vector<int64_t>& part : parts_at_peace(rows)) {
    std::vector<std::vector<TokenId>> ids;
    for (const int64_t row : part) ids.push_back(rows.ids[static_cast<size_t>(row)]);
    for (std::vector<int64_t>& pack : plan_packs(ids, kForwardTokens, longest)) {
      for (int64_t& member : pack) member = part[static_cast<size_t>(member)];
      packs.push_back(std::move(pack));
    }
  }
  return packs;
}

}  // namespace

RowStates run_to_lookups(const CausalLM& model, const TokenRows& rows, HookSite first) {
  const torch::NoGradGuard no_grad;
  std::vector<RowPack> packs;
  int64_t n_before = 0;
  for (std::vector<int64_t>& members : plan_row_packs(model, rows)) {
    packs.emplace_back(rows, std::move(members));
    n_before += packs.back().n_before();
  }
  RowStates states{{}, KeyValues(n_before), std::vector<std::vector<int64_t>>(rows.ids.size())};
  std::vector<Tensor> own_parts;
  for (const RowPack& pack : packs) pack.run(model, first, states, own_parts);
  states.own_ND = in_row_order(own_parts, packs, rows);
  return states;
}

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
  // then the MLP's output is a term of the layer's output, so both sites are moved there
  if (first_layer_ > edited_layer_)
    return model.run_layers(moved(hidden_1ND_, added_RX, among_tokens_), sequence(), above).squeeze(0);
  const std::vector<Tensor> added = added_RX.chunk(vectors_of(site_), 1);
  // the model's last layer computes only the outputs
  const LookupPlaces& lookups = first_layer_ + 1 == above.end ? among_outputs_ : among_tokens_;
  HookSet hooks;
  hooks.replace({HookPoint::kMlpOut, first_layer_}, [&](const Tensor& x) { return moved(x, added[0], lookups); });
  if (added.size() > 1)
    hooks.replace({HookPoint::kAttnOut, first_layer_}, [&](const Tensor& x) { return moved(x, added[1], lookups); });
  return model.run_layers(hidden_1ND_, sequence(), above, hooks).squeeze(0);
}

}  // namespace lancet
