// Which edits that stand no longer hold because the same fact was edited again, to another target.
#include "lancet/journal/journal.h"
#include "lancet/requests/same_fact.h"

namespace lancet {

ReplacedEdits replaced_edits(const Journal& journal) {
  std::map<std::string, const EditRequest*> latest;
  for (const BatchEntry& batch : journal.batches())
    for (const EditRecord& edit : batch.edits)
      for (const std::string& key : fact_keys(edit.request)) latest[key] = &edit.request;
  ReplacedEdits replaced;
  for (const BatchEntry& batch : journal.batches())
    for (const EditRecord& edit : batch.edits)
      for (const std::string& key : fact_keys(edit.request))
        if (const EditRequest& last = *latest.at(key); !has_same_target(edit.request, last))
          replaced.emplace(edit.request.id, last.id);
  return replaced;
}

}  // namespace lancet
