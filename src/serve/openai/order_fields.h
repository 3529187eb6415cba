// The fields of a request. Each is read once. Fields that were not read are refused, unless they change nothing.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api_problem.h"

namespace lancet {

class OrderFields {
 public:
  /// Throws: ApiProblem if the body is not a JSON object.
  explicit OrderFields(std::string_view body);

  /// Returns the field's value; null if it is absent or null.
  const nlohmann::json* find(const std::string& key);

  // Each function throws ApiProblem that names the field and says what was expected.
  std::optional<int64_t> number(const std::string& key, int64_t least, int64_t most);
  std::optional<double> fraction(const std::string& key, double least, double most);
  std::optional<bool> choice(const std::string& key);
  std::optional<std::string> text(const std::string& key);

  /// Throws: ApiProblem for the first field that was not read, unless it does not concern the answer, or has a value
  /// that has no effect.
  void refuse_others() const;

 private:
  nlohmann::json fields_;
  std::set<std::string> read_;
};

/// Throws: ApiProblem about one field.
[[noreturn]] void refuse_field(const std::string& key, const std::string& expected);

}  // namespace lancet
