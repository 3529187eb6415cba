#include "lancet/history/edits_taken.h"

#include <algorithm>

#include "lancet/core/error.h"

namespace lancet {

EditsTaken::EditsTaken(const Journal& journal, const std::vector<std::string>& ids, std::optional<UndoMode> mode)
    : journal_(journal), ids_(ids), gone_(ids.begin(), ids.end()) {
  const std::vector<BatchEntry>& batches = journal.batches();
  while (first_ < batches.size() && !has_any_of(batches[first_])) ++first_;
  bool is_tail = true;
  for (size_t i = first_; i < batches.size(); ++i) is_tail = is_tail && has_all_of(batches[i]);
  mode_ = mode.value_or(is_tail ? UndoMode::kLast : UndoMode::kDowndate);
  if (mode_ == UndoMode::kLast && !is_tail)
    throw ConfigError("--mode last: the edits are not all of the last batches: expected downdate or replay");
  if (is_tail && mode_ == UndoMode::kDowndate) mode_ = UndoMode::kLast;
}

std::vector<std::vector<EditRequest>> EditsTaken::requests() const {
  std::vector<std::vector<EditRequest>> all;
  for (const BatchEntry& batch : journal_.batches()) {
    std::vector<EditRequest> stay;
    for (const EditRecord& edit : batch.edits)
      if (!gone_.contains(edit.request.id)) stay.push_back(edit.request);
    if (!stay.empty()) all.push_back(std::move(stay));
  }
  return all;
}

bool EditsTaken::has_all_of(const BatchEntry& batch) const {
  return std::ranges::all_of(batch.edits, [&](const EditRecord& edit) { return gone_.contains(edit.request.id); });
}

bool EditsTaken::has_any_of(const BatchEntry& batch) const {
  return std::ranges::any_of(batch.edits, [&](const EditRecord& edit) { return gone_.contains(edit.request.id); });
}

}  // namespace lancet
