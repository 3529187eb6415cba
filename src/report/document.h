// A report's JSON as the pages read it: whatever is there, of reports of other versions too.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/report/report_page.h"

namespace lancet::page {

using Json = nlohmann::ordered_json;

/// Throws: ConfigError for what is no JSON, or no report of lancet.
Json parse_report(const RunDocument& run);

/// What lies at the end of the keys; null where one of them is missing.
const Json& part(const Json& json, std::initializer_list<const char*> keys);
/// nullopt: not a finite number.
std::optional<double> number_of(const Json& json);
/// Empty: not a text.
std::string text_of(const Json& json);
/// Text, or a number or boolean as JSON has it; lists with ", " between. Empty: null.
std::string any_text(const Json& json);

struct Interval {
  double low = 0, high = 0;
};

enum class Better { kHigher, kLower, kNone };

/// One of `metrics`.
struct MetricFigures {
  std::string name = {}, heading = {}, unit = {}, protocol = {};
  Better better = Better::kHigher;
  std::optional<double> before = {}, right_after = {}, after = {};
  std::optional<Interval> before_interval = {}, right_after_interval = {}, after_interval = {};
  std::optional<double> prompts = {};
  std::string asked = {};  ///< hash of the prompts and targets that it rests on; empty: not known

  bool is_share() const { return unit == "share"; }
};

/// Returns the figures of a report's `metrics` or `costs`, in the file's order.
std::vector<MetricFigures> figures_of(const Json& all);

/// Returns the first metric of each heading that is a share, six at most: those that a page shows first.
std::vector<MetricFigures> headline_metrics(const std::vector<MetricFigures>& metrics);

/// Edited layers as "0, 1"; empty: not known.
std::string layers_of(const Json& report);
/// Returns the seconds of all stages; nullopt: not known.
std::optional<double> total_seconds(const Json& report);
/// Device and bytes.
std::vector<std::pair<std::string, double>> peaks_of(const Json& bytes);
/// What a request's prompt was continued with "before" or "after", without the blanks before it.
std::string continuation_of(const Json& request, const char* when);
/// Number of edits of which it was measured whether they took, and how many did.
struct TookFigures {
  size_t took = 0, measured = 0;
};
/// nullopt: not measured, or a report of an earlier version.
std::optional<TookFigures> took_of(const Json& report);
/// "86 of 100 edits took (...)", as the report says it.
std::string took_sentence(const Json& report);
/// The model folder's name.
std::string model_name(const Json& report);

}  // namespace lancet::page
