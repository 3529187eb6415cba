// What the JSON reports share.
#pragma once

#include <nlohmann/json.hpp>

#include "lancet/edit/request.h"
#include "lancet/eval/costs.h"
#include "lancet/eval/metrics.h"
#include "lancet/job/statistics_report.h"
#include "lancet/runtime/memory_watch.h"

namespace lancet {

using Json = nlohmann::ordered_json;

/// null: n/a.
inline Json number_json(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

inline Json mean_json(const Tally& tally) { return number_json(tally.mean()); }

/// What a metric is, without its figures.
inline Json describe(const MetricRow& row) {
  return {{"group", row.group},
          {"unit", unit_name(row.unit)},
          {"better", better_name(row.better)},
          {"protocol", row.protocol}};
}

/// null: the metric has none.
inline Json interval_json(const std::map<std::string, Interval, std::less<>>& intervals, std::string_view metric) {
  const auto found = intervals.find(metric);
  return found == intervals.end() ? Json(nullptr) : Json{found->second.low, found->second.high};
}

inline Json bytes_json(const PeakBytes& peaks) {
  Json json = Json::object();
  for (const auto& [device, bytes] : peaks) json[device] = bytes;
  return json;
}

/// What editing cost: name -> figures on the unedited and the edited model.
inline Json costs_json(const CostReport& before, const CostReport& after) {
  Json costs = Json::object();
  const auto before_intervals = bootstrap_intervals(before.items), after_intervals = bootstrap_intervals(after.items);
  for (const MetricRow& row : after.metrics) {
    Json cost = {
        {"before", mean_json(before.totals.find(row.name)->second)},
        {"after", mean_json(after.totals.find(row.name)->second)},
        {"interval",
         {{"before", interval_json(before_intervals, row.name)}, {"after", interval_json(after_intervals, row.name)}}},
        {"count", after.totals.find(row.name)->second.count}};
    cost.update(describe(row));
    costs[row.name] = std::move(cost);
  }
  return costs;
}

/// Where a layer's imported moments came from.
inline Json import_json(const LayerStatistics& layer) {
  return {{"layer", layer.layer},
          {"file", layer.imported_file.string()},
          {"content_hash", layer.imported_hash},
          {"tokens", layer.tokens}};
}

/// Records of the request file that were left out.
inline Json skipped_json(const SkippedRecords& skipped) {
  return {{"count", skipped.count}, {"messages", skipped.messages}};
}

/// Invalid UTF-8 cannot come in (readers refuse it), but a report must never be lost to a byte.
inline std::string dump_report(const Json& json) {
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lancet
