// Tables for other programs: RFC 4180 in UTF-8, shares from 0 to 1 in full precision, an empty field where there is
// nothing. Texts are the user's and the model's: none of them runs in a spreadsheet.
#include "csv.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "lancet/core/strings.h"
#include "lancet/core/words.h"

namespace lancet::page {
namespace {

std::string field(const std::string& text) { return csv_text(text); }

std::string field(const std::optional<double>& value) { return value ? Json(*value).dump() : ""; }

std::string line(const std::vector<std::string>& fields) { return join(fields, ",") + "\r\n"; }

/// "efficacy_prob" -> "Efficacy": the heading of a metric that is in no group.
std::string heading_of(const std::string& name, std::string group) {
  if (group.empty()) {
    group = name.substr(0, name.rfind('_'));
    std::replace(group.begin(), group.end(), '_', ' ');
  }
  if (!group.empty()) group[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(group[0])));
  return group;
}

/// An end of an interval, 0 or 1.
std::string end_field(const Json& interval, size_t end) {
  return interval.is_array() && interval.size() == 2 ? field(number_of(interval[end])) : "";
}

/// Layers that some request has a realised share of, as the report names them, in the order of the first.
std::vector<std::string> realised_layers(const Json& report) {
  std::vector<std::string> layers;
  for (const Json& request : part(report, {"requests"})) {
    const Json& shares = part(request, {"value", "realised", "layers"});
    if (!shares.is_object()) continue;
    for (const auto& [layer, share] : shares.items())
      if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  return layers;
}

std::vector<std::string> metric_names(const Json& report) {
  std::vector<std::string> names;
  const Json& metrics = part(report, {"metrics"});
  if (metrics.is_object())
    for (const auto& [name, metric] : metrics.items()) names.push_back(name);
  return names;
}

}  // namespace

std::string metrics_csv(const Json& report) {
  std::string out = line({"metric", "group", "unit", "better", "before", "before_low", "before_high", "right_after",
                          "after", "after_low", "after_high", "prompts", "protocol"});
  for (const std::string& name : metric_names(report)) {
    const Json& metric = part(report, {"metrics", name.c_str()});
    const Json &before = part(metric, {"interval", "before"}), &after = part(metric, {"interval", "after"});
    const std::string unit = text_of(part(metric, {"unit"})), better = text_of(part(metric, {"better"}));
    const auto prompts = number_of(part(metric, {"prompts"}));
    out += line(
        {field(name), field(heading_of(name, text_of(part(metric, {"group"})))), field(unit.empty() ? "share" : unit),
         better == "lower" || better == "none" ? better : "higher", field(number_of(part(metric, {"before"}))),
         end_field(before, 0), end_field(before, 1), field(number_of(part(metric, {"right_after"}))),
         field(number_of(part(metric, {"after"}))), end_field(after, 0), end_field(after, 1),
         prompts ? std::to_string(static_cast<int64_t>(*prompts)) : "", field(text_of(part(metric, {"protocol"})))});
  }
  return out;
}

std::string requests_csv(const Json& report) {
  constexpr const char* kTexts[] = {"id", "prompt", "subject", "target", "target_true", "skipped"};
  constexpr const char* kVerdict[] = {"success", "took", "why"};  // took, attained: names of an earlier version
  constexpr const char* kShares[] = {"realised", "attained"};
  constexpr const char* kValues[] = {"steps", "initial_loss", "final_loss", "initial_norm", "delta_norm"};
  const std::vector<std::string> layers = realised_layers(report), metrics = metric_names(report);
  std::vector<std::string> head(std::begin(kTexts), std::end(kTexts));
  head.insert(head.end(), std::begin(kVerdict), std::end(kVerdict));
  head.insert(head.end(), std::begin(kValues), std::end(kValues));
  for (const char* name : kShares) {
    head.emplace_back(name);
    for (const std::string& layer : layers) head.push_back(field(cat(name, ".", layer)));
  }
  for (const std::string& metric : metrics)
    for (const char* when : {".before", ".after"}) head.push_back(field(metric + when));
  head.insert(head.end(), {"continuation.before", "continuation.after"});
  std::string out = line(head);
  for (const Json& request : part(report, {"requests"})) {
    std::vector<std::string> fields;
    for (const char* key : kTexts) fields.push_back(field(any_text(part(request, {key}))));
    for (const char* key : kVerdict) fields.push_back(field(any_text(part(request, {"verdict", key}))));
    for (const char* key : kValues) fields.push_back(any_text(part(request, {"value", key})));
    for (const char* name : kShares) {
      fields.push_back(field(number_of(part(request, {"value", name, "total"}))));
      for (const std::string& layer : layers)
        fields.push_back(field(number_of(part(request, {"value", name, "layers", layer.c_str()}))));
    }
    for (const std::string& metric : metrics)
      for (const char* when : {"before", "after"})
        fields.push_back(field(number_of(part(request, {"metrics", metric.c_str(), when}))));
    for (const char* when : {"before", "after"})
      fields.push_back(field(text_of(part(request, {"continuation", when}))));
    out += line(fields);
  }
  return out;
}

}  // namespace lancet::page
