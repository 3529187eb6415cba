// Methods of texts, dicts and lists.
#pragma once

#include <optional>
#include <string_view>

#include "operations.h"

namespace lancet {

/// What a type has under a name.
enum class JinjaMethodKind {
  kNone,       ///< nothing
  kMethod,     ///< a method that call_method() knows
  kForbidden,  ///< a method that changes the value, which the sandbox forbids
  kUnknown     ///< something of Python's that lancet does not have
};

JinjaMethodKind method_kind(const JinjaValue& value, std::string_view name);

/// Calls a method of kMethod.
JinjaValue call_method(JinjaRun& run, const JinjaValue& self, std::string_view name, const JinjaArguments& arguments);

JinjaValue call_text_method(JinjaRun& run, const JinjaValue& self, std::string_view name,
                            const JinjaArguments& arguments);

/// Splits as str.split() does, from either end. `separator` empty: at white space. `most`: cuts, -1: all.
struct JinjaSplit {
  std::optional<std::string> separator = {};
  int64_t most = -1;
  bool is_from_right = false;
};
std::vector<std::string> split_text(JinjaRun& run, std::string_view text, const JinjaSplit& how);
/// str.splitlines().
std::vector<std::string> lines_of(std::string_view text);
/// str.strip(), of either end or both. `characters` empty: white space.
enum class JinjaSide { kLeft, kRight, kBoth };
std::string stripped_text(std::string_view text, const std::optional<std::string>& characters, JinjaSide side);
/// str.replace(). `most`: replacements, negative: all.
std::string replaced_text(JinjaRun& run, std::string_view text, std::string_view from, std::string_view to,
                          int64_t most);

}  // namespace lancet
