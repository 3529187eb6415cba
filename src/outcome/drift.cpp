#include "lancet/outcome/drift.h"

#include <algorithm>
#include <cmath>

#include "lancet/core/strings.h"

namespace lancet {
std::optional<Drift> drift_of(const DriftAlarm& alarm, std::span<const BatchReport> batches) {
  std::optional<Drift> last;
  int64_t edits = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    edits += static_cast<int64_t>(batches[i].requests.size());
    if (!batches[i].text_kl) continue;
    const Drift before = last.value_or(Drift{});
    Drift now{.text_kl = *batches[i].text_kl, .batches = i + 1, .edits = edits};
    now.is_too_far = now.text_kl > alarm.text_kl;
    const double by_edit = (now.text_kl - before.text_kl) / static_cast<double>(now.edits - before.edits);
    if (!now.is_too_far && by_edit > 0)
      now.edits_left = static_cast<int64_t>(std::min(std::floor((alarm.text_kl - now.text_kl) / by_edit), 1e12));
    last = now;
  }
  return last;
}

std::string drift_text(const DriftAlarm& alarm, const Drift& drift) {
  const std::string reached = cat("text_kl ", short_number(drift.text_kl), " of ", short_number(alarm.text_kl));
  if (drift.is_too_far) return cat(reached, ": the drift alarm is set off");
  return drift.edits_left ? cat(reached, ": about ", *drift.edits_left, " more edits") : reached;
}

}  // namespace lancet
