#include "module_rules.h"

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Matching a module's name takes a few hundred steps. An expression that takes more is malicious, or written by
/// accident.
constexpr uint32_t kMostSteps = 200'000;
constexpr uint32_t kMostHeapKiB = 4096;

std::string pcre_message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR pcre_units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

struct ModulePattern::Compiled {
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
  }

  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
};

ModulePattern::ModulePattern(std::string text) : text_(std::move(text)) {
  int error = 0;
  PCRE2_SIZE at = 0;
  auto compiled = std::make_shared<Compiled>();
  compiled->code = pcre2_compile(pcre_units(text_), text_.size(), PCRE2_ANCHORED, &error, &at, nullptr);
  if (compiled->code == nullptr)
    throw CheckpointError(cat("not a regular expression: '", printable(text_), "': ", pcre_message(error)));
  compiled->limits = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(compiled->limits, kMostSteps);
  pcre2_set_heap_limit(compiled->limits, kMostHeapKiB);
  compiled_ = std::move(compiled);
}

bool ModulePattern::begins(std::string_view name) const {
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  const int found = pcre2_match(compiled_->code, pcre_units(name), name.size(), 0, 0, match, compiled_->limits);
  pcre2_match_data_free(match);
  if (found >= 0) return true;
  if (found == PCRE2_ERROR_NOMATCH) return false;
  throw CheckpointError(cat("quantization_config: the expression '", printable(text_), "' cannot be compared with '",
                            printable(name), "': ", pcre_message(found), "; write a simpler one"));
}

ModuleRule::ModuleRule(RuleText kind, std::string text, std::optional<MatrixCode> code)
    : kind_(kind), text_(std::move(text)), code_(code) {
  if (kind_ == RuleText::kPattern || kind_ == RuleText::kPatternOrEnd) pattern_.emplace(text_);
}

bool ModuleRule::names(std::string_view module) const {
  if (kind_ == RuleText::kName) return module == text_;
  if (kind_ == RuleText::kPart) return module.find(text_) != std::string_view::npos;
  return pattern_->begins(module) || (kind_ == RuleText::kPatternOrEnd && module.ends_with(text_));
}

std::optional<MatrixCode> ModuleRules::code_of(std::string_view module) const {
  for (const ModuleRule& rule : rules)
    if (rule.names(module)) return rule.code();
  return usual;
}

std::optional<MatrixCode> ModuleRules::code_of_packed(std::string_view module) const {
  for (const ModuleRule& rule : rules)
    if (rule.code() && rule.names(module)) return rule.code();
  return usual;
}

}  // namespace lancet
