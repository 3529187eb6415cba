#include "row_states.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>

#include "lancet/models/batching.h"
#include "lancet/models/packed_documents.h"

namespace lancet {
namespace {

using Document = std::span<const TokenId>;

/// Some rows whole, and what of them lies before the lookup tokens, each such text once.
class RowPack {
 public:
  RowPack(const TokenRows& rows, std::vector<int64_t> members)
      : rows_(rows), members_(std::move(members)), whole_(whole_documents()), before_(documents_before()) {}

  /// Tokens before the lookup tokens.
  int64_t n_before() const { return before_ ? before_->size() : 0; }

  /// The rows' states go to `states`, `own_parts` (in the members' order), and its pool.
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
    sequence.outputs_BO = torch::zeros({1, 1}, torch::kLong);  // of the last layer only keys and values are wanted
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

  /// Tokens before the lookup tokens at which deltas are held, and these.
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

  /// Texts before the lookup tokens, by length. Texts that are the same end with the same token of the pack.
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

  /// Returns which token of the whole rows each token before the lookup tokens is.
  std::vector<int64_t> whole_tokens_before() const {
    std::vector<int64_t> from(static_cast<size_t>(before_->size()));
    for (size_t i = 0; i < members_.size(); ++i) {
      if (document_of_[i] < 0) continue;
      const std::vector<int64_t>& tokens = before_->tokens[static_cast<size_t>(document_of_[i])];
      for (size_t t = 0; t < tokens.size(); ++t) from[static_cast<size_t>(tokens[t])] = whole_.tokens[i][t];
    }
    return from;
  }

  /// Notes each row's places in the pool, to which this pack's tokens are added next.
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
  std::vector<int64_t> document_of_;  ///< each member's text before the lookup token; -1: it has none
  std::optional<PackedDocumentBatch> before_;
};

/// Puts states that lie pack after pack, row after row, in the rows' own order.
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

/// Whether both rows begin with a token at which only one of them holds a delta, or each its own.
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

/// The rows in as few parts as it takes that those of a part share what they begin with.
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
    return plan_packs(rows.ids, kForwardTokens, longest);  // without comparing each row with all others
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

}  // namespace lancet
