// render_jinja < lines.jsonl, for the parity tests. A line is {"template", "variables", "now"}, answered by {"text"},
// or by {"error", "cause", "line"}.
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "lancet/jinja/jinja_template.h"

namespace lancet {
namespace {

using OrderedJson = nlohmann::ordered_json;

JinjaData data_of(const OrderedJson& json) {
  if (json.is_null()) return {};
  if (json.is_boolean()) return {json.get<bool>()};
  if (json.is_number_integer()) return {json.get<int64_t>()};
  if (json.is_number()) return {json.get<double>()};
  if (json.is_string()) return {json.get<std::string>()};
  if (json.is_array()) {
    JinjaDataList list;
    for (const OrderedJson& item : json) list.push_back(data_of(item));
    return {std::move(list)};
  }
  JinjaDataMap map;
  for (const auto& [key, value] : json.items()) map.emplace_back(key, data_of(value));
  return {std::move(map)};
}

OrderedJson answer(const OrderedJson& asked, std::string& source, std::unique_ptr<JinjaTemplate>& parsed) {
  try {
    if (!parsed || source != asked["template"]) {
      source = asked["template"].get<std::string>();
      parsed.reset();
      parsed = std::make_unique<JinjaTemplate>(source);
    }
    const auto seconds = static_cast<std::time_t>(asked["now"].get<int64_t>());
    std::tm now{};
    gmtime_r(&seconds, &now);
    return {{"text", parsed->render(std::get<JinjaDataMap>(data_of(asked["variables"]).value), now)}};
  } catch (const JinjaError& error) {
    const char* causes[] = {"template", "raised", "limit"};
    return {{"error", error.reason()}, {"cause", causes[static_cast<int>(error.cause())]}, {"line", error.line()}};
  }
}

}  // namespace
}  // namespace lancet

int main() {
  try {
    std::string source;
    std::unique_ptr<lancet::JinjaTemplate> parsed;
    for (std::string line; std::getline(std::cin, line);)
      std::cout << lancet::answer(lancet::OrderedJson::parse(line), source, parsed).dump(-1, ' ', true) << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
