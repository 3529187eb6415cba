// A report's JSON as pages and tables take it: whatever is there, of reports of other versions too.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lancet/pages/report_page.h"

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

/// The model folder's name.
std::string model_name(const Json& report);

}  // namespace lancet::page
