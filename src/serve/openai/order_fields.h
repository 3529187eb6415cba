// The fields of a request, each read once; those that nobody read are refused, unless they change nothing.
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
  /// Throws: ApiProblem for what is no JSON object.
  explicit OrderFields(std::string_view body);

  /// The field's value; null where it is not there, or null itself.
  const nlohmann::json* find(const std::string& key);

  // Each throws ApiProblem that names the field and what was expected.
  std::optional<int64_t> number(const std::string& key, int64_t least, int64_t most);
  std::optional<double> fraction(const std::string& key, double least, double most);
  std::optional<bool> choice(const std::string& key);
  std::optional<std::string> text(const std::string& key);

  /// Throws: ApiProblem for the first field that was not read, unless it says nothing about the answer, or says what
  /// holds anyhow.
  void refuse_others() const;

 private:
  nlohmann::json fields_;
  std::set<std::string> read_;
};

/// Throws: ApiProblem about one field.
[[noreturn]] void refuse_field(const std::string& key, const std::string& expected);

}  // namespace lancet
