// The methods of texts, dicts and lists.
#pragma once

#include <optional>
#include <string_view>

#include "operations.h"

namespace lancet {

/// What a type has under a name.
enum class JinjaMethodKind {
  kNone,       ///< nothing
  kMethod,     ///< a method that call_method() has
  kForbidden,  ///< a method that changes the value, which the sandbox forbids
  kUnknown     ///< a method or attribute of Python that lancet lacks
};

JinjaMethodKind method_kind(const JinjaValue& value, std::string_view name);

/// Calls a method of the kind kMethod.
JinjaValue call_method(JinjaRun& run, const JinjaValue& self, std::string_view name, const JinjaArguments& arguments);

JinjaValue call_text_method(JinjaRun& run, const JinjaValue& self, std::string_view name,
                            const JinjaArguments& arguments);

/// The arguments of a split as by str.split(), from either end. `separator`: empty for white space. `most`: number of
/// cuts, -1 for all.
struct JinjaSplit {
  std::optional<std::string> separator = {};
  int64_t most = -1;
  bool is_from_right = false;
};
std::vector<std::string> split_text(JinjaRun& run, std::string_view text, const JinjaSplit& how);
/// Computes str.splitlines().
std::vector<std::string> lines_of(std::string_view text);
/// Computes str.strip() on either end or both. `characters`: empty for white space.
enum class JinjaSide { kLeft, kRight, kBoth };
std::string stripped_text(std::string_view text, const std::optional<std::string>& characters, JinjaSide side);
/// Computes str.replace(). `most`: number of replacements, negative for all.
std::string replaced_text(JinjaRun& run, std::string_view text, std::string_view from, std::string_view to,
                          int64_t most);

}  // namespace lancet
