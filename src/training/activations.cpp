#include "lancet/training/activations.h"

#include <torch/types.h>

#include <algorithm>
#include <span>
#include <stdexcept>

#include "lancet/models/batching.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/send.h"

namespace lancet {
namespace {

using PromptRows = std::vector<const LocatedPrompt*>;

std::vector<std::vector<TokenId>> up_to_lookups(const PromptRows& rows) {
  std::vector<std::vector<TokenId>> ids;
  for (const LocatedPrompt* row : rows) ids.emplace_back(row->ids.begin(), row->ids.begin() + row->lookup + 1);
  return ids;
}

/// Pads rows instead of packing them: a value that is inserted in a row must not reach another row.
TokenBatch padded_batch(const std::vector<std::vector<TokenId>>& documents, const std::vector<int64_t>& rows) {
  std::vector<std::vector<TokenId>> ids;
  for (const int64_t row : rows) ids.push_back(documents[static_cast<size_t>(row)]);
  return make_batch(ids);
}

RowBatches padded_batches(const std::vector<std::vector<TokenId>>& documents) {
  std::vector<int64_t> lengths;
  for (const std::vector<TokenId>& ids : documents) lengths.push_back(std::ssize(ids));
  return plan_batches(lengths, {.tokens = kForwardTokens});
}

/// Returns the lookup token of each row: int64 [B, 1], host.
Tensor lookups_of(const TokenBatch& batch) {
  std::vector<int64_t> lookups;
  for (const int64_t length : batch.sequence.lengths) lookups.push_back(length - 1);
  return torch::tensor(lookups, torch::kLong).unsqueeze(1);
}

/// Returns [B, X] of [B, T, X].
Tensor at_places(const Tensor& value_BTX, const Tensor& place_B1) {
  return value_BTX.take_along_dim(place_B1.to(value_BTX.device()).unsqueeze(2), 1).squeeze(1);
}

PackedDocumentBatch packed_batch(const PromptRows& rows, const std::vector<int64_t>& indices) {
  std::vector<std::span<const TokenId>> documents;
  for (const int64_t index : indices) {
    const LocatedPrompt& row = *rows[static_cast<size_t>(index)];
    documents.push_back(std::span(row.ids).first(static_cast<size_t>(row.lookup) + 1));
  }
  return PackedDocumentBatch(documents);
}

/// Returns the last token of each document: int64 [1, B], host.
Tensor last_tokens(const PackedDocumentBatch& packed) {
  std::vector<int64_t> last;
  for (const std::vector<int64_t>& tokens : packed.tokens) last.push_back(tokens.back());
  return torch::tensor(last, torch::kLong).unsqueeze(0);
}

}  // namespace

LookupStates::LookupStates(const CausalLM& model, std::vector<const LocatedPrompt*> rows, int64_t kept_tokens)
    : model_(model),
      rows_(std::move(rows)),
      kept_tokens_(kept_tokens),
      batches_(plan_packs(up_to_lookups(rows_), kForwardTokens, longest_usual_text(model.config()))) {
  kept_.resize(batches_.size());
}

std::vector<char> LookupStates::choose_kept(const Communicator& communicator) const {
  std::vector<char> chosen(batches_.size(), 0);
  int64_t left = kept_tokens_;
  for (const size_t batch : own_pieces(communicator, batches_.size())) {
    left -= packed_batch(rows_, batches_[batch]).size();
    if (left < 0) break;
    chosen[batch] = 1;
  }
  return chosen;
}

Tensor LookupStates::collect(HookSite site, Communicator& communicator) {
  const torch::NoGradGuard no_grad;
  if (site.layer < kept_layer_) throw std::logic_error("hidden states are asked for below the layer they are kept at");
  if (is_kept_.empty()) is_kept_ = choose_kept(communicator);
  const Placement& placement = model_.placement();
  return scatter_rows(communicator, RowWork{placement, "keys"}, batches_,
                      {placement.weight_dtype(), placement.device_of(site.layer)},
                      [&](size_t batch, StageTurn& turn) { return collect_batch(batch, site, turn); });
}

Tensor LookupStates::collect_batch(size_t index, HookSite site, StageTurn& turn) {
  const PackedDocumentBatch packed = packed_batch(rows_, batches_[index]);
  TokenBatch batch = packed.batch;
  batch.sequence.turn = &turn;
  Kept now = kept_[index];
  if (!now.h_BTD.defined()) now = {0, model_.embed(batch.ids_BT, batch.sequence)};
  if (is_kept_[index] != 0 && now.layer < kept_layer_) {
    const Tensor h_BTD = model_.run_layers(now.h_BTD, batch.sequence, {now.layer, kept_layer_});
    now = kept_[index] = {kept_layer_, h_BTD.to(model_.placement().device_of(kept_layer_))};
  }

  batch.sequence.outputs_BO = last_tokens(packed);
  Tensor collected_BX;
  HookSet hooks;
  hooks.observe(site, [&](const Tensor& value_BTX) {
    // before attention all tokens are there; after it only the outputs
    const bool is_whole = site.point == HookPoint::kBlockIn || site.point == HookPoint::kAttnIn;
    const Tensor value_TX = value_BTX.squeeze(0);
    collected_BX =
        is_whole ? value_TX.index_select(0, sent_to(value_TX.device(), batch.sequence.outputs_BO[0])) : value_TX;
  });
  hooks.stop_at(site);
  model_.run_layers(now.h_BTD, batch.sequence, {now.layer, site.layer + 1}, hooks);
  return collected_BX;
}

Tensor replay_from(const CausalLM& model, const std::vector<const LocatedPrompt*>& rows, const Replay& replay,
                   Communicator& communicator) {
  const torch::NoGradGuard no_grad;
  const Placement& placement = model.placement();
  const int64_t last = replay.layers.back();
  const std::vector<std::vector<TokenId>> documents = up_to_lookups(rows);
  const RowBatches batches = padded_batches(documents);
  const RowKind kind{placement.weight_dtype(), placement.device_of(last)};
  const auto run = [&](size_t index, StageTurn& turn) {
    TokenBatch batch = padded_batch(documents, batches[index]);
    batch.sequence.turn = &turn;
    const Tensor lookup_B1 = lookups_of(batch);
    const Tensor row_B = to_index(batches[index], replay.value_ND.device());
    HookSet hooks;
    hooks.replace(replay.at, [&](const Tensor& value_BTD) {
      const Tensor place_B1D = lookup_B1.to(value_BTD.device()).unsqueeze(2).expand({-1, 1, value_BTD.size(2)});
      const Tensor given_B1D = replay.value_ND.index_select(0, row_B).unsqueeze(1).to(value_BTD.options());
      return value_BTD.scatter(1, place_B1D, given_B1D);
    });
    std::vector<Tensor> found;
    for (const int64_t layer : replay.layers)
      hooks.observe({replay.at.point, layer},
                    [&](const Tensor& value_BTD) { found.push_back(at_places(value_BTD, lookup_B1).to(kind.device)); });
    hooks.stop_at({replay.at.point, last});
    model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, {0, last + 1}, hooks);
    return torch::cat(found, 1);
  };
  return scatter_rows(communicator, RowWork{placement, "keys"}, batches, kind, run)
      .unflatten(1, {static_cast<int64_t>(replay.layers.size()), -1});
}

Tensor collect_at(const CausalLM& model, std::vector<const LocatedPrompt*> rows, HookSite site,
                  Communicator& communicator) {
  return LookupStates(model, std::move(rows), 0).collect(site, communicator);
}

}  // namespace lancet
