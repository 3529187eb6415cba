// How facts without an id are numbered.
#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/journal/journal.h"

namespace lancet {

std::vector<std::string> new_ids(const Journal& journal, std::span<const std::string> taken, size_t count) {
  int64_t next = 0;
  const auto go_beyond = [&](const std::string& id) {
    if (const std::optional<int64_t> number = parse_whole_number(id); number && *number < INT64_MAX)
      next = std::max(next, *number + 1);
  };
  for (const BatchEntry& batch : journal.batches())
    for (const EditRecord& edit : batch.edits) go_beyond(edit.request.id);
  for (const UndoEntry& undo : journal.undone()) std::ranges::for_each(undo.edits, go_beyond);
  std::ranges::for_each(taken, go_beyond);
  std::vector<std::string> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(std::to_string(next++));
  return ids;
}

}  // namespace lancet
