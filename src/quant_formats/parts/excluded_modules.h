// Modules that a method's settings are to name as not quantised.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "module_rules.h"
#include "scheme_keys.h"

namespace lancet {

/// What transformers leaves alone where there is no list: the head, as it and the families' files call it.
inline constexpr std::string_view kHeads[] = {"lm_head", "embed_out"};

struct ExcludedModules {
  std::span<const std::string> modules = {};
  std::span<const std::string> others = {};  ///< modules that stay as they are
};

/// An expression that matches the name and nothing else, for Python and PCRE alike.
std::string exact_expression(std::string_view module);

/// Adds the modules to the list `key` of the settings, whose texts are rules of that kind. A list that is absent
/// begins with `usual`. Throws: CheckpointError where a rule of that kind cannot name a module alone.
void add_to_list(OrderedJson& settings, std::string_view key, RuleText kind, std::span<const std::string_view> usual,
                 const ExcludedModules& excluded);

}  // namespace lancet
