// The rules of a configuration about modules. The first rule that names a module applies.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/quant_formats/matrix_code.h"

namespace lancet {

/// A regular expression of a configuration. It matches at the beginning of a name, like Python's re.match.
class ModulePattern {
 public:
  /// Throws: CheckpointError "not a regular expression: ...", without a place.
  explicit ModulePattern(std::string text);
  /// Throws: CheckpointError if matching takes too many steps.
  bool begins(std::string_view name) const;

 private:
  struct Compiled;
  std::string text_;
  std::shared_ptr<const Compiled> compiled_;
};

/// How a rule's text names modules.
enum class RuleText {
  kName,          ///< the text is the name
  kPattern,       ///< the expression matches at the beginning of the name
  kPatternOrEnd,  ///< as kPattern, or the name ends with the text
  kPart           ///< the text occurs in the name
};

class ModuleRule {
 public:
  /// `code`: for the modules that the rule names; nullopt: they are not quantised. Throws: as ModulePattern.
  ModuleRule(RuleText kind, std::string text, std::optional<MatrixCode> code);

  bool names(std::string_view module) const;
  const std::optional<MatrixCode>& code() const { return code_; }

 private:
  RuleText kind_;
  std::string text_;
  std::optional<ModulePattern> pattern_;
  std::optional<MatrixCode> code_;
};

class ModuleRules {
 public:
  std::vector<ModuleRule> rules;
  std::optional<MatrixCode> usual;  ///< code of modules that no rule names

  std::optional<MatrixCode> code_of(std::string_view module) const;
  /// Returns the code of the first rule that names the module and says how it is quantised; else the usual code.
  std::optional<MatrixCode> code_of_packed(std::string_view module) const;
};

}  // namespace lancet
