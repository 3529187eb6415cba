// The edits of a journal that are to be removed.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lancet/journal/journal.h"

namespace lancet {

class EditsTaken {
 public:
  /// `ids` must be in the journal, which must outlive this. `mode`: nullopt: kLast if the ids are all edits of the last
  /// batches, else kDowndate. Throws: ConfigError for kLast if they are not.
  EditsTaken(const Journal& journal, const std::vector<std::string>& ids, std::optional<UndoMode> mode);

  UndoMode mode() const { return mode_; }
  /// Returns the first batch that loses an edit.
  size_t first() const { return first_; }
  UndoEntry entry() const { return {.when = utc_now(), .mode = mode_, .keeps = first_, .edits = ids_}; }
  /// Returns the edits that stay, by batch, including those that are edited again.
  std::vector<std::vector<EditRequest>> requests() const;

 private:
  bool has_all_of(const BatchEntry& batch) const;
  bool has_any_of(const BatchEntry& batch) const;

  const Journal& journal_;
  std::vector<std::string> ids_;
  std::set<std::string> gone_;
  size_t first_ = 0;
  UndoMode mode_ = UndoMode::kLast;
};

}  // namespace lancet
