// An option in words.
#pragma once

#include <string>
#include <vector>

#include "lancet/core/strings.h"
#include "lancet/spec/option.h"

namespace lancet {

/// "`warn`, `mean`": names of any type of text.
template <typename Names>
std::string quoted_names(const Names& names) {
  std::vector<std::string> quoted;
  for (const auto& name : names) quoted.push_back(cat("`", name, "`"));
  return join(quoted);
}

/// Returns the default as it is written in a job: "25", "auto", "[]"; empty: none.
std::string default_text(const AnyOption& option);

/// "integer of at least 1", "`auto` or a list of integers", "integer of at least 2, in tokens".
std::string type_text(const AnyOption& option);

/// Its names, in order; empty: it is no choice.
std::vector<std::string> choices_of(const AnyOption& option);

/// What its type takes of all integers or numbers: " of at least 1"; empty: all of them, or it takes none.
std::string range_text(const AnyOption& option);

/// The meaning, and what auto stands for.
std::string description_of(const AnyOption& option);

}  // namespace lancet
