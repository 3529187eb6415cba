#include "lancet/diff/edits_diff.h"

#include <map>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/edit_history/edit_history.h"
#include "lancet/requests/same_fact.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// The edits of a journal that are still valid, in order.
class Facts {
 public:
  explicit Facts(const Journal& journal) {
    for (const BatchEntry& batch : journal.batches())
      for (const EditRecord& edit : batch.edits) {
        if (const auto earlier = find(edit.request)) {
          edits_[*earlier].reset();
          ++superseded_;
        }
        for (const std::string& key : fact_keys(edit.request)) place_of_[key] = edits_.size();
        edits_.emplace_back(edit.request);
      }
  }

  std::optional<size_t> find(const EditRequest& request) const {
    for (const std::string& key : fact_keys(request)) {
      const auto found = place_of_.find(key);
      if (found != place_of_.end() && edits_[found->second]) return found->second;
    }
    return std::nullopt;
  }

  /// nullopt: a later edit replaced it.
  const std::vector<std::optional<EditRequest>>& edits() const { return edits_; }
  size_t superseded() const { return superseded_; }

 private:
  std::vector<std::optional<EditRequest>> edits_;
  std::map<std::string, size_t> place_of_;
  size_t superseded_ = 0;
};

Journal journal_of(const fs::path& output) {
  const std::optional<fs::path> found = find_journal(output);
  if (!found)
    throw ConfigError(cat(output.string(), ": expected an output of lancet edit with its journal, ", kEditsFolder, "/",
                          kJournalFile, ", got a folder without one; compare the weights, without --edits"));
  return Journal::read(*found);
}

}  // namespace

EditsDiff compare_journals(const Journal& before, const Journal& after) {
  const Facts old_facts(before), new_facts(after);
  EditsDiff diff{.base_before = before.base(),
                 .base_after = after.base(),
                 .superseded_before = old_facts.superseded(),
                 .superseded_after = new_facts.superseded()};
  std::vector<bool> is_met(new_facts.edits().size());
  for (const std::optional<EditRequest>& edit : old_facts.edits()) {
    if (!edit) continue;
    const std::optional<size_t> place = new_facts.find(*edit);
    if (!place) {
      diff.only_before.push_back(*edit);
      continue;
    }
    is_met[*place] = true;
    const EditRequest& other = *new_facts.edits()[*place];
    if (has_same_target(*edit, other))
      ++diff.common;
    else
      diff.contradictions.emplace_back(*edit, other);
  }
  for (size_t i = 0; i < is_met.size(); ++i)
    if (!is_met[i] && new_facts.edits()[i]) diff.only_after.push_back(*new_facts.edits()[i]);
  return diff;
}

EditsDiff compare_edits(const fs::path& before, const fs::path& after) {
  return compare_journals(journal_of(before), journal_of(after));
}

}  // namespace lancet
