#include "document.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "present_names.h"

namespace lancet::page {
namespace {

std::optional<Interval> interval_of(const Json& json) {
  if (!json.is_array() || json.size() != 2) return std::nullopt;
  const std::optional<double> low = number_of(json[0]), high = number_of(json[1]);
  return low && high ? std::optional(Interval{*low, *high}) : std::nullopt;
}

/// "efficacy_prob" -> "Efficacy".
std::string heading_of(const std::string& name) {
  std::string heading = name.substr(0, name.rfind('_'));
  std::replace(heading.begin(), heading.end(), '_', ' ');
  return heading;
}

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

Json parse_report(const RunDocument& run) {
  Json json;
  try {
    json = parse_ordered_json(run.json);
  } catch (const JsonProblem& problem) {
    throw ConfigError(cat(run.label, ": report.json: expected JSON: ", problem.what()));
  }
  const std::string format = text_of(part(json, {"format"}));
  if (!format.starts_with("lancet-report-"))
    throw ConfigError(cat(run.label, ": report.json: format: expected lancet-report-1, got '", format,
                          "'. Is it the report of lancet edit?"));
  return with_present_names(std::move(json));
}

const Json& part(const Json& json, std::initializer_list<const char*> keys) {
  static const Json kNone;
  const Json* at = &json;
  for (const char* key : keys) {
    if (!at->is_object()) return kNone;
    const auto found = at->find(key);
    if (found == at->end()) return kNone;
    at = &*found;
  }
  return *at;
}

std::optional<double> number_of(const Json& json) {
  if (!json.is_number()) return std::nullopt;
  const double value = json.get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string text_of(const Json& json) { return json.is_string() ? json.get<std::string>() : std::string(); }

std::string any_text(const Json& json) {
  if (json.is_null()) return "";
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array()) return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::vector<std::string> items;
  for (const Json& item : json) items.push_back(any_text(item));
  return join(items);
}

std::vector<MetricFigures> figures_of(const Json& all) {
  std::vector<MetricFigures> metrics;
  if (!all.is_object()) return metrics;
  for (const auto& [name, json] : all.items()) {
    MetricFigures metric{.name = name,
                         .heading = text_of(part(json, {"group"})),
                         .unit = text_of(part(json, {"unit"})),
                         .protocol = text_of(part(json, {"protocol"}))};
    metric.heading = capitalised(metric.heading.empty() ? heading_of(name) : metric.heading);
    if (metric.unit.empty()) metric.unit = "share";
    const std::string better = text_of(part(json, {"better"}));
    metric.better = better == "lower" ? Better::kLower : better == "none" ? Better::kNone : Better::kHigher;
    metric.before = number_of(part(json, {"before"}));
    metric.right_after = number_of(part(json, {"right_after"}));
    metric.after = number_of(part(json, {"after"}));
    metric.before_interval = interval_of(part(json, {"interval", "before"}));
    metric.right_after_interval = interval_of(part(json, {"interval", "right_after"}));
    metric.after_interval = interval_of(part(json, {"interval", "after"}));
    metric.prompts = number_of(part(json, {json.contains("prompts") ? "prompts" : "count"}));
    metric.asked = text_of(part(json, {"asked"}));
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

std::vector<MetricFigures> headline_metrics(const std::vector<MetricFigures>& metrics) {
  constexpr size_t kMost = 6;
  std::vector<MetricFigures> chosen;
  std::set<std::string> headings;
  for (const MetricFigures& metric : metrics)
    if (metric.is_share() && metric.after && chosen.size() < kMost && headings.insert(metric.heading).second)
      chosen.push_back(metric);
  return chosen;
}

std::string layers_of(const Json& report) {
  constexpr std::string_view kKey = ".layers.";
  std::set<int64_t> layers;
  for (const Json& weight : part(report, {"weights"})) {
    const std::string name = text_of(part(weight, {"name"}));
    const size_t at = name.find(kKey);
    if (at == std::string::npos) continue;
    const std::string rest = name.substr(at + kKey.size());
    if (const auto layer = parse_whole_number(rest.substr(0, rest.find('.')))) layers.insert(*layer);
  }
  std::vector<std::string> texts;
  for (const int64_t layer : layers) texts.push_back(std::to_string(layer));
  return join(texts);
}

std::optional<double> total_seconds(const Json& report) {
  const Json& stages = part(report, {"seconds"});
  if (!stages.is_object() || stages.empty()) return std::nullopt;
  double sum = 0;
  for (const Json& seconds : stages) sum += number_of(seconds).value_or(0);
  return sum;
}

std::vector<std::pair<std::string, double>> peaks_of(const Json& bytes) {
  std::vector<std::pair<std::string, double>> peaks;
  if (!bytes.is_object()) return peaks;
  for (const auto& [device, size] : bytes.items())
    if (const auto number = number_of(size)) peaks.emplace_back(device, *number);
  return peaks;
}

std::string continuation_of(const Json& request, const char* when) {
  const std::string text = text_of(part(request, {"continuation", when}));
  return text.substr(std::min(text.find_first_not_of(" \n\t"), text.size()));
}

std::optional<TookFigures> took_of(const Json& report) {
  const auto took = number_of(part(report, {"verdicts", "success"})),
             of = number_of(part(report, {"verdicts", "measured"}));
  if (!took || !of || *took < 0 || *of < 1) return std::nullopt;
  return TookFigures{static_cast<size_t>(*took), static_cast<size_t>(*of)};
}

std::string took_sentence(const Json& report) { return text_of(part(report, {"verdicts", "text"})); }

std::string model_name(const Json& report) {
  const std::filesystem::path folder(text_of(part(report, {"model", "folder"})));
  const std::string name = folder.filename().string();
  return name.empty() ? folder.parent_path().filename().string() : name;
}

}  // namespace lancet::page
