#include "evaluation_text.h"

#include <utility>

#include "table.h"

namespace lancet::cli {

namespace {

std::string before_and_after(std::vector<std::string> head, const std::vector<MetricRow>& metrics,
                             const Tallies& before, const Tallies& after) {
  if (metrics.empty()) return {};
  std::vector<std::vector<std::string>> rows{std::move(head)};
  for (const MetricRow& row : metrics) {
    const Tally& now = after.find(row.name)->second;
    rows.push_back({row.name, metric_text(row, before.find(row.name)->second.mean()), metric_text(row, now.mean()),
                    std::to_string(now.count)});
  }
  return format_table(rows);
}

}  // namespace

std::string before_after_text(const Evaluation& before, const Evaluation& after, const char* after_head) {
  return before_and_after({"metric, %", "before", after_head, "prompts"}, after.metrics, before.totals, after.totals);
}

std::string side_effects_text(const SideEffectReport& before, const SideEffectReport& after) {
  return before_and_after({"elsewhere, %", "before", "after", "of"}, after.metrics, before.totals, after.totals);
}

}  // namespace lancet::cli
