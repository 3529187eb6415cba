// What the tests of job files share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lancet/core/config_tree.h"
#include "lancet/core/error.h"

namespace lancet::testing {

/// The message of the ConfigError that `call` throws.
template <typename Call>
std::string config_error(const Call& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kConfig);
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "expected a ConfigError, got: " << error.what();
    return {};
  }
  ADD_FAILURE() << "expected a ConfigError, got none";
  return {};
}

/// A tree as text with every detail but the lines: scalars in 'single' quotes were quoted, <angle> brackets were not.
inline std::string dump(const ConfigTree& tree) {
  std::string out;
  switch (tree.kind) {
    case ConfigTree::Kind::kNull:
      return "null";
    case ConfigTree::Kind::kScalar:
      return tree.quoted ? "'" + tree.scalar + "'" : "<" + tree.scalar + ">";
    case ConfigTree::Kind::kList:
      for (const ConfigTree& item : tree.items) out += (out.empty() ? "" : ", ") + dump(item);
      return "[" + out + "]";
    case ConfigTree::Kind::kMap:
      for (const auto& [key, value] : tree.entries) out += (out.empty() ? "" : ", ") + key + "=" + dump(value);
      return "{" + out + "}";
  }
  return out;
}

inline ConfigTree parsed(std::string_view text) { return parse_config(text, "job.yaml"); }

}  // namespace lancet::testing
