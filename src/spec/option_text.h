// An option in words.
#pragma once

#include <string>

#include "lancet/spec/option.h"

namespace lancet {

/// As it is written in a job: "25", "auto", "[]"; empty: none.
std::string default_text(const AnyOption& option);

/// "integer of at least 1", "`auto` or a list of integers", "integer of at least 2, in tokens".
std::string type_text(const AnyOption& option);

/// The meaning, and what auto stands for.
std::string description_of(const AnyOption& option);

}  // namespace lancet
