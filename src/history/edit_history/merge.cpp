#include "lancet/edit_history/merge.h"

#include <torch/types.h>

#include <algorithm>
#include <map>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "merged_state.h"

namespace lancet {
namespace {

using Histories = std::span<const EditHistory* const>;

std::string number_text(size_t history) { return cat("history ", history + 1); }

void check_base(const JournalBase& base, const JournalBase& first, size_t number) {
  const auto check = [&](const char* what, const std::string& got, const std::string& expected) {
    if (got != expected)
      throw ConfigError(cat(number_text(number), ": of another base than the first: ", what, ": expected ", expected,
                            ", got ", got, "; merge histories of one model"));
  };
  check("weights", base.weights, first.weights);
  check("config.json", base.config, first.config);
  check("tokenizer", base.tokenizer, first.tokenizer);
}

/// Copies the settings. Returns their indices in the new journal.
std::vector<size_t> put_settings(Journal& journal, const Journal& from) {
  std::vector<size_t> places;
  for (const EditSetting& setting : from.settings()) places.push_back(journal.add_setting(setting));
  return places;
}

}  // namespace

void check_mergeable(Histories histories) {
  if (histories.empty()) throw ConfigError("expected histories to merge, got none");
  std::map<std::string, size_t> owners;
  for (size_t h = 0; h < histories.size(); ++h) {
    const EditHistory& history = *histories[h];
    check_base(history.journal().base(), histories.front()->journal().base(), h);
    if (!history.finish().empty())
      throw ConfigError(cat(number_text(h), ": its method changed the weights after the last batch, for all its edits ",
                            "together: edit again with all requests instead"));
    for (const EditRequest& request : history.journal().requests())
      if (const auto [owner, is_new] = owners.emplace(request.id, h); !is_new)
        throw ConfigError(cat("edit ", request.id, ": it stands in ", number_text(owner->second), " and in ",
                              number_text(h), ": say which of them stays, by --prefer, or take it out by --drop"));
  }
}

MergedHistory add_histories(Histories histories, const ModelConfig& config) {
  check_mergeable(histories);
  MergedHistory merged{EditHistory(histories.front()->journal().base()), {}};
  const bool keeps_states = has_one_method(histories);
  MergedState state;
  for (size_t h = 0; h < histories.size(); ++h) {
    const EditHistory& history = *histories[h];
    const std::vector<size_t> settings = put_settings(merged.history.journal(), history.journal());
    state.begin_history();
    for (size_t b = 0; b < history.batches().size(); ++b) {
      BatchEntry entry = history.journal().batches()[b];
      EditedBatch batch = history.batches()[b];
      entry.setting = settings[entry.setting];
      if (h > 0) {
        entry.weights.clear();
        batch.state = keeps_states ? state.next(batch.state) : StateStep{.edits = batch.state.edits};
      } else if (keeps_states) {
        state.next(batch.state);
      }
      merged.history.add(std::move(entry), std::move(batch), config);
    }
  }
  if (histories.size() > 1)
    merged.approximation = "each history's values, keys and residuals were found without the others' changes";
  if (!keeps_states) merged.approximation += "; of several methods the first history's state alone goes on";
  for (const EditHistory* history : histories)
    if (!history->has_solved())
      merged.approximation += "; one was written without its method's state, which does not go on";
  if (state.left_out())
    merged.approximation += "; what a later history had compressed or counted of its state is left out";
  return merged;
}

namespace {

/// Returns the sum of several changes applied to some keys. Low-rank changes are not multiplied out.
Tensor values_at(const std::vector<WeightDelta>& deltas, size_t n, const Tensor& keys_FN) {
  Tensor values_DN;
  for (size_t i = 0; i < n; ++i) {
    Tensor one_DN;
    if (const auto* low_rank = std::get_if<LowRankDelta>(&deltas[i]))
      one_DN = torch::matmul(low_rank->left_OR.to(torch::kDouble),
                             torch::matmul(low_rank->right_RI.to(torch::kDouble), keys_FN));
    else
      one_DN = torch::matmul(std::get<DenseDelta>(deltas[i]).full_OI.to(torch::kDouble), keys_FN);
    values_DN = values_DN.defined() ? values_DN + one_DN : one_DN;
  }
  return values_DN;
}

const WeightChanges* find_changes(const std::vector<WeightChanges>& changes, WeightId id) {
  const auto found = std::ranges::find_if(changes, [&](const WeightChanges& each) { return each.id == id; });
  return found == changes.end() ? nullptr : &*found;
}

/// The key of some edits in the last change of a weight in which they have a key.
struct LastKey {
  const SolvedSystem* system = nullptr;
  int64_t column = 0;
  size_t n_before = 0;  ///< number of earlier changes of the weight, in all batches
};

/// Returns the keys of one weight in one batch, in the order of their first change.
std::vector<std::pair<std::vector<int64_t>, LastKey>> last_keys(const EditedBatch& batch, WeightId id,
                                                                size_t n_before) {
  std::vector<std::pair<std::vector<int64_t>, LastKey>> keys;
  for (const SolvedSystem& system : batch.systems) {
    if (system.id != id) continue;
    for (size_t n = 0; n < system.edits.size(); ++n) {
      const LastKey last{&system, static_cast<int64_t>(n), n_before + static_cast<size_t>(system.change)};
      auto known = std::ranges::find_if(keys, [&](const auto& each) { return each.first == system.edits[n]; });
      if (known == keys.end()) known = keys.insert(keys.end(), {system.edits[n], last});
      if (system.change >= known->second.system->change) known->second = last;
    }
  }
  return keys;
}

AskedKeys asked_of(const EditHistory& history, WeightId id) {
  const std::vector<WeightChanges> all = history.changes();
  const WeightChanges* changes = find_changes(all, id);
  AskedKeys asked{.id = id};
  std::vector<Tensor> keys_FN, asked_DN;
  size_t n_before = 0;
  for (size_t b = 0; b < history.batches().size(); ++b) {
    const EditedBatch& batch = history.batches()[b];
    std::map<size_t, std::vector<LastKey>> by_change;  // the keys of one change are handled together
    std::map<size_t, std::vector<std::vector<int64_t>>> edits;
    for (auto& [of, last] : last_keys(batch, id, n_before)) {
      by_change[last.n_before].push_back(last);
      edits[last.n_before].push_back(of);
    }
    for (const auto& [n_changes, keys] : by_change) {
      std::vector<int64_t> columns;
      for (const LastKey& key : keys) columns.push_back(key.column);
      const Tensor select = torch::tensor(columns, torch::kLong);
      const SolvedSystem& system = *keys.front().system;
      keys_FN.push_back(system.keys_FN.index_select(1, select).to(torch::kDouble));
      Tensor value_DN = system.residuals_DN.index_select(1, select).to(torch::kDouble);
      if (n_changes > 0) value_DN = value_DN + values_at(changes->deltas, n_changes, keys_FN.back());
      asked_DN.push_back(value_DN);
      for (std::vector<int64_t>& of : edits[n_changes]) asked.edits.emplace_back(b, std::move(of));
    }
    if (const WeightChanges* own = find_changes(batch.changes, id)) n_before += own->deltas.size();
  }
  asked.keys_FN = torch::cat(keys_FN, 1);
  asked.asked_DN = torch::cat(asked_DN, 1);
  return asked;
}

}  // namespace

std::vector<AskedKeys> asked_in_all(const EditHistory& history) {
  const torch::NoGradGuard no_grad;
  std::set<WeightId> ids;
  for (size_t b = 0; b < history.batches().size(); ++b) {
    const EditedBatch& batch = history.batches()[b];
    if (batch.systems.empty() && !batch.changes.empty())
      throw ConfigError(cat("batch ", b + 1,
                            ": the method keeps nothing of what its changes were solved from: there is ",
                            "nothing to solve jointly; add the changes instead"));
    for (const SolvedSystem& system : batch.systems) ids.insert(system.id);
  }
  std::vector<AskedKeys> asked;
  for (const WeightId& id : ids) asked.push_back(asked_of(history, id));
  return asked;
}

std::vector<Interference> interference(Histories histories) {
  const torch::NoGradGuard no_grad;
  std::vector<Interference> found;
  for (size_t h = 0; h < histories.size(); ++h) {
    std::map<std::pair<size_t, int64_t>, Interference> edits;
    const std::vector<BatchEntry>& entries = histories[h]->journal().batches();
    std::set<WeightId> ids;
    for (const EditedBatch& batch : histories[h]->batches())
      for (const SolvedSystem& system : batch.systems) ids.insert(system.id);
    for (const WeightId& id : ids) {
      const AskedKeys asked = asked_of(*histories[h], id);
      Tensor moved_DN = torch::zeros_like(asked.asked_DN);
      for (size_t other = 0; other < histories.size(); ++other) {
        if (other == h) continue;
        const std::vector<WeightChanges> all = histories[other]->all_changes();
        if (const WeightChanges* changes = find_changes(all, id))
          moved_DN = moved_DN + values_at(changes->deltas, changes->deltas.size(), asked.keys_FN);
      }
      const Tensor share_N = moved_DN.norm(2, 0) / asked.asked_DN.norm(2, 0);
      for (size_t n = 0; n < asked.edits.size(); ++n)
        for (const int64_t edit : asked.edits[n].second) {
          const size_t b = asked.edits[n].first;
          const auto [known, is_new] = edits.try_emplace({b, edit});
          Interference& one = known->second;
          const double share = share_N[static_cast<int64_t>(n)].item<double>();
          if (is_new)
            one = {h,     b,       static_cast<size_t>(edit), entries[b].edits[static_cast<size_t>(edit)].request.id,
                   share, id.layer};
          else if (share > one.largest)
            one.largest = share, one.layer = id.layer;
        }
    }
    for (auto& [place, one] : edits) found.push_back(std::move(one));
  }
  return found;
}

}  // namespace lancet
