#include "evaluation_text.h"

#include "table.h"

namespace lancet::cli {

std::string side_effects_text(const SideEffectReport& before, const SideEffectReport& after) {
  if (after.metrics.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"elsewhere, %", "before", "after", "of"}};
  for (const MetricRow& row : after.metrics) {
    const Tally& now = after.totals.find(row.name)->second;
    rows.push_back({row.name, metric_text(row, before.totals.find(row.name)->second.mean()),
                    metric_text(row, now.mean()), std::to_string(now.count)});
  }
  return format_table(rows);
}

}  // namespace lancet::cli
