#include "excluded_modules.h"

#include <algorithm>
#include <cctype>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

bool is_plain(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Returns a rule's text that names the module and none of the others.
std::string text_for(const std::string& module, std::string_view key, RuleText kind,
                     std::span<const std::string> others) {
  const bool reads_expressions = kind == RuleText::kPatternOrEnd;
  const bool means_itself = std::ranges::all_of(module, [](char c) { return is_plain(c) || c == '.' || c == '-'; });
  if (reads_expressions && !means_itself) return exact_expression(module);
  const ModuleRule rule(kind, module, std::nullopt);
  const auto hit = std::ranges::find_if(others, [&](const std::string& other) { return rule.names(other); });
  if (hit == others.end()) return module;
  if (reads_expressions) return exact_expression(module);
  throw CheckpointError(cat("quantization_config.", key, ": expected a name that stands for one module, got '",
                            printable(module), "', which is part of '", printable(*hit),
                            "' too: leave both unquantised, or write an adapter"));
}

}  // namespace

std::string exact_expression(std::string_view module) {
  std::string expression = "^";
  for (const char c : module) {
    if (!is_plain(c) && static_cast<unsigned char>(c) < 0x80) expression += '\\';
    expression += c;
  }
  return expression + "$";
}

void add_to_list(OrderedJson& settings, std::string_view key, RuleText kind, std::span<const std::string_view> usual,
                 const ExcludedModules& excluded) {
  OrderedJson& list = settings[std::string(key)];
  if (list.is_null()) {
    list = OrderedJson::array();
    for (const std::string_view name : usual) list.push_back(name);
  }
  for (const std::string& module : excluded.modules) list.push_back(text_for(module, key, kind, excluded.others));
}

}  // namespace lancet
