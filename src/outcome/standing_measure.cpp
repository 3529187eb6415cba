#include "lancet/outcome/standing_measure.h"

#include "lancet/core/strings.h"
#include "lancet/core/words.h"
#include "lancet/outcome/edit_verdicts.h"

namespace lancet {

std::map<std::string, MeasuredEdit> measured_again(const StandingMeasure& measure, const Journal& journal) {
  if (measure.requests.empty()) return {};  // of most edits: the journal need not be gone through
  const std::string when = utc_now();
  const ReplacedEdits replaced = replaced_edits(journal);
  std::map<std::string, MeasuredEdit> edits;
  for (size_t i = 0; i < measure.requests.size(); ++i) {
    const std::string& id = measure.requests[i].id;
    MeasuredEdit& edit = edits[id];
    if (const auto known = journal.measured().find(id); known != journal.measured().end())
      edit.before = known->second.before;
    edit.after = means_of(measure.now.requests[i]);
    edit.success = says_target(measure.now, i);
    edit.when = when;
    if (edit.success && !*edit.success)
      edit.why = replaced.contains(id) ? cat("edit ", replaced.at(id), " replaced it")
                                       : "it no longer holds: another token is likelier";
  }
  return edits;
}

std::string standing_text(const StandingMeasure& measure) {
  size_t held = 0, measured = 0;
  for (size_t i = 0; i < measure.requests.size(); ++i)
    if (const std::optional<bool> says = says_target(measure.now, i)) {
      ++measured;
      held += *says ? 1 : 0;
    }
  if (measured == 0) return {};
  return cat(held, " of ", counted(measured, "earlier edit"), held == 1 ? " still holds" : " still hold",
             " (the model says the target, ", kSuccessMetric, ")");
}

}  // namespace lancet
