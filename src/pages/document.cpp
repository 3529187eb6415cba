#include "document.h"

#include <cmath>
#include <filesystem>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "present_names.h"

namespace lancet::page {

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

std::string model_name(const Json& report) {
  const std::filesystem::path folder(text_of(part(report, {"model", "folder"})));
  const std::string name = folder.filename().string();
  return name.empty() ? folder.parent_path().filename().string() : name;
}

}  // namespace lancet::page
