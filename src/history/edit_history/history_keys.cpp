#include "history_keys.h"

#include <algorithm>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

using Columns = std::vector<std::vector<int64_t>>;

/// Returns the tokens that determine an edit's key: those up to the subject's last token.
std::vector<TokenId> ids_of_key(const EditRecord& edit) {
  return {edit.prompt_ids.begin(), edit.prompt_ids.begin() + edit.lookup + 1};
}

bool has_equal_keys(const BatchEntry& entry) {
  std::set<std::vector<TokenId>> known;
  return !std::ranges::all_of(entry.edits,
                              [&](const EditRecord& edit) { return known.insert(ids_of_key(edit)).second; });
}

[[noreturn]] void refuse(int64_t layer) {
  throw ConfigError(cat("layer ", layer, ": which keys of the method's history are whose cannot be told from what is ",
                        "stored; use --mode replay"));
}

}  // namespace

std::string history_name(int64_t layer) { return cat(kHistoryPrefix, layer); }

bool is_history(const std::string& name, const Tensor& tensor) {
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return tensor.dim() == 2 && (begins(kHistoryPrefix) || begins(kCurvaturePrefix) || begins(kTextsPrefix));
}

Columns history_columns(const EditedBatch& batch, const BatchEntry& entry, int64_t layer, int64_t n_columns) {
  const auto n_edits = static_cast<int64_t>(entry.edits.size());
  if (n_columns == n_edits && !has_equal_keys(entry)) {
    Columns columns;
    for (int64_t i = 0; i < n_edits; ++i) columns.push_back({i});
    return columns;
  }
  // Changes come in rounds, one round after another, each with its own targets. A change with unseen targets begins a
  // round and has all of its targets, unless residual bounds left some of them for a later pass. Edits that were left
  // out have no key.
  Columns columns;
  std::set<int64_t> seen;
  std::set<std::vector<TokenId>> keys_seen;
  for (const SolvedSystem& system : batch.systems) {
    if (system.id.layer != layer) continue;
    int64_t n_new = 0, n_new_of_known_keys = 0;
    for (const std::vector<int64_t>& edits : system.edits) {
      if (seen.contains(edits.front())) continue;
      ++n_new;
      n_new_of_known_keys += keys_seen.contains(ids_of_key(entry.edits[static_cast<size_t>(edits.front())]));
    }
    if (n_new == 0) continue;
    if (n_new != static_cast<int64_t>(system.edits.size()) || (!seen.empty() && n_new_of_known_keys != n_new))
      refuse(layer);
    for (const std::vector<int64_t>& edits : system.edits) {
      columns.push_back(edits);
      seen.insert(edits.begin(), edits.end());
      keys_seen.insert(ids_of_key(entry.edits[static_cast<size_t>(edits.front())]));
    }
  }
  if (static_cast<int64_t>(columns.size()) != n_columns) refuse(layer);
  return columns;
}

}  // namespace lancet
