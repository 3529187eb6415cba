// Tables for other programs: RFC 4180 in UTF-8, shares from 0 to 1 in full precision, an empty field where there is
// nothing. Texts are the user's and the model's: none of them runs in a spreadsheet.
#include <algorithm>

#include "edit_sections.h"
#include "lancet/core/strings.h"

namespace lancet::page {
namespace {

std::string field(const std::string& text) { return csv_text(text); }

std::string field(const std::optional<double>& value) { return value ? Json(*value).dump() : ""; }

std::string line(const std::vector<std::string>& fields) { return join(fields, ",") + "\r\n"; }

std::optional<double> low(const std::optional<Interval>& interval) {
  return interval ? std::optional(interval->low) : std::nullopt;
}

std::optional<double> high(const std::optional<Interval>& interval) {
  return interval ? std::optional(interval->high) : std::nullopt;
}

/// Layers that some request has a realised share of, as the report names them, in the order of the first.
std::vector<std::string> realised_layers(const EditView& view) {
  std::vector<std::string> layers;
  for (const Json& request : part(view.report, {"requests"})) {
    const Json& shares = part(request, {"value", "realised", "layers"});
    if (!shares.is_object()) continue;
    for (const auto& [layer, share] : shares.items())
      if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  return layers;
}

}  // namespace

std::string metrics_csv(const EditView& view) {
  std::string out = line({"metric", "group", "unit", "better", "before", "before_low", "before_high", "right_after",
                          "after", "after_low", "after_high", "prompts", "protocol"});
  for (const MetricFigures& metric : view.metrics) {
    const char* better = metric.better == Better::kHigher  ? "higher"
                         : metric.better == Better::kLower ? "lower"
                                                           : "none";
    out += line({field(metric.name), field(metric.heading), field(metric.unit), better, field(metric.before),
                 field(low(metric.before_interval)), field(high(metric.before_interval)), field(metric.right_after),
                 field(metric.after), field(low(metric.after_interval)), field(high(metric.after_interval)),
                 metric.prompts ? std::to_string(static_cast<int64_t>(*metric.prompts)) : "", field(metric.protocol)});
  }
  return out;
}

std::string requests_csv(const EditView& view) {
  constexpr const char* kTexts[] = {"id", "prompt", "subject", "target", "target_true", "skipped"};
  constexpr const char* kVerdict[] = {"success", "took", "why"};  // took, attained: names of an earlier version
  constexpr const char* kShares[] = {"realised", "attained"};
  constexpr const char* kValues[] = {"steps", "initial_loss", "final_loss", "initial_norm", "delta_norm"};
  const std::vector<std::string> layers = realised_layers(view);
  std::vector<std::string> head(std::begin(kTexts), std::end(kTexts));
  head.insert(head.end(), std::begin(kVerdict), std::end(kVerdict));
  head.insert(head.end(), std::begin(kValues), std::end(kValues));
  for (const char* name : kShares) {
    head.emplace_back(name);
    for (const std::string& layer : layers) head.push_back(field(cat(name, ".", layer)));
  }
  for (const MetricFigures& metric : view.metrics)
    for (const char* when : {".before", ".after"}) head.push_back(field(metric.name + when));
  head.insert(head.end(), {"continuation.before", "continuation.after"});
  std::string out = line(head);
  for (const Json& request : part(view.report, {"requests"})) {
    std::vector<std::string> fields;
    for (const char* key : kTexts) fields.push_back(field(any_text(part(request, {key}))));
    for (const char* key : kVerdict) fields.push_back(field(any_text(part(request, {"verdict", key}))));
    for (const char* key : kValues) fields.push_back(any_text(part(request, {"value", key})));
    for (const char* name : kShares) {
      fields.push_back(field(number_of(part(request, {"value", name, "total"}))));
      for (const std::string& layer : layers)
        fields.push_back(field(number_of(part(request, {"value", name, "layers", layer.c_str()}))));
    }
    for (const MetricFigures& metric : view.metrics)
      for (const char* when : {"before", "after"})
        fields.push_back(field(number_of(part(request, {"metrics", metric.name.c_str(), when}))));
    for (const char* when : {"before", "after"})
      fields.push_back(field(text_of(part(request, {"continuation", when}))));
    out += line(fields);
  }
  return out;
}

}  // namespace lancet::page
