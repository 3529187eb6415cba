// Helpers that all JSON reports share.
#pragma once

#include <nlohmann/json.hpp>

#include "lancet/eval/metrics.h"
#include "lancet/eval/side_effects.h"
#include "lancet/outcome/statistics_report.h"
#include "lancet/requests/request.h"
#include "lancet/runtime/memory.h"

namespace lancet {

using Json = nlohmann::ordered_json;

/// Returns the number, or null for n/a.
inline Json number_json(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

inline Json mean_json(const Tally& tally) { return number_json(tally.mean()); }

/// Describes a metric without its figures.
inline Json describe(const MetricRow& row) {
  return {{"group", row.group},
          {"unit", unit_name(row.unit)},
          {"better", better_name(row.better)},
          {"protocol", row.protocol},
          {"asked", row.asked.empty() ? Json(nullptr) : Json(row.asked)}};
}

/// Returns the metric's interval; null if it has none.
inline Json interval_json(const std::map<std::string, Interval, std::less<>>& intervals, std::string_view metric) {
  const auto found = intervals.find(metric);
  return found == intervals.end() ? Json(nullptr) : Json{found->second.low, found->second.high};
}

inline Json bytes_json(const PeakBytes& peaks) {
  Json json = Json::object();
  for (const auto& [device, bytes] : peaks) json[device] = bytes;
  return json;
}

/// The figures that were measured on one model.
struct MeasuredFigures {
  const Tallies& totals;
  std::span<const Tallies> items;  ///< the units that bootstrap intervals resample, usually requests
};

/// Maps each metric to its figures on the unedited and the edited model. `count`: the key under which the number of
/// outcomes is written.
inline Json figures_json(std::span<const MetricRow> rows, const MeasuredFigures& before, const MeasuredFigures& after,
                         const char* count) {
  const auto before_intervals = bootstrap_intervals(before.items), after_intervals = bootstrap_intervals(after.items);
  const auto mean_before = [&](const std::string& name) {
    const auto found = before.totals.find(name);
    return found == before.totals.end() ? Json(nullptr) : mean_json(found->second);
  };
  Json figures = Json::object();
  for (const MetricRow& row : rows) {
    const Tally& total = after.totals.find(row.name)->second;
    Json figure = {
        {"before", mean_before(row.name)},
        {"after", mean_json(total)},
        {"interval",
         {{"before", interval_json(before_intervals, row.name)}, {"after", interval_json(after_intervals, row.name)}}},
        {count, total.count}};
    figure.update(describe(row));
    figures[row.name] = std::move(figure);
  }
  return figures;
}

/// Maps each side effect to its figures on the unedited and the edited model.
inline Json side_effects_json(const SideEffectReport& before, const SideEffectReport& after) {
  return figures_json(after.metrics, {before.totals, before.items}, {after.totals, after.items}, "count");
}

/// Says where a layer's imported moments came from.
inline Json import_json(const LayerStatisticsReport& layer) {
  return {{"layer", layer.layer},
          {"file", layer.imported_file.string()},
          {"content_hash", layer.imported_hash},
          {"tokens", layer.tokens}};
}

/// Describes the records of the request file that were left out.
inline Json skipped_json(const SkippedRecords& skipped) {
  return {{"count", skipped.count}, {"messages", skipped.messages}};
}

/// Serialises a report. Readers already refuse invalid UTF-8, but if a byte is still invalid, it is replaced rather
/// than losing the report.
inline std::string dump_report(const Json& json) {
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lancet
