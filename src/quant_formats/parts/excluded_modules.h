// Adds modules to the settings' list of modules that are not quantised.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "module_rules.h"
#include "scheme_keys.h"

namespace lancet {

/// The modules that transformers does not quantise if there is no list: the head, by its names in transformers and in
/// families' files.
inline constexpr std::string_view kHeads[] = {"lm_head", "embed_out"};

struct ExcludedModules {
  std::span<const std::string> modules = {};
  std::span<const std::string> others = {};  ///< modules that stay quantised
};

/// Returns an expression that matches only this name, both in Python and in PCRE.
std::string exact_expression(std::string_view module);

/// Adds the modules to the list `key` of the settings, whose texts are rules of that kind. If the list is absent, it
/// begins with `usual`. Throws: CheckpointError if a rule of that kind cannot name a module alone.
void add_to_list(OrderedJson& settings, std::string_view key, RuleText kind, std::span<const std::string_view> usual,
                 const ExcludedModules& excluded);

}  // namespace lancet
