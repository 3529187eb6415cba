// Jinja templates, as chat templates of checkpoints are written in: read once, and run within limits.
//
// A template gives the text that jinja2's sandbox gives as transformers sets it up (ImmutableSandboxedEnvironment with
// trim_blocks and lstrip_blocks, loop controls, the tag `generation`, its own `tojson`, `raise_exception` and
// `strftime_now`), or an error. What jinja2 has and lancet has not is an error that names it and its line.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lancet/core/error.h"

namespace lancet {

/// A template that cannot be read, or that failed: what is wrong, and in which line of the template.
class JinjaError : public Error {
 public:
  enum class Cause {
    kTemplate,  ///< what the template says, or what it does with what it was given
    kRaised,    ///< the template called raise_exception(message)
    kLimit      ///< it took too many steps, too much memory or too deep a nesting
  };

  JinjaError(Cause cause, std::string reason, int64_t line);

  Cause cause() const { return cause_; }
  /// The message without the line: of kRaised, the template's own words.
  const std::string& reason() const { return reason_; }
  int64_t line() const { return line_; }

 private:
  Cause cause_;
  std::string reason_;
  int64_t line_;
};

struct JinjaData;
using JinjaDataList = std::vector<JinjaData>;
using JinjaDataMap = std::vector<std::pair<std::string, JinjaData>>;  ///< in their order; no key twice

/// What a template is given: None, or what JSON can say.
struct JinjaData {
  std::variant<std::monostate, bool, int64_t, double, std::string, JinjaDataList, JinjaDataMap> value = {};
};

/// What a run may take at most. The defaults are far above what public templates take of long conversations.
struct JinjaLimits {
  int64_t steps = 4'000'000;                   ///< parts of the template that are evaluated, and work as long
  int64_t memory_bytes = int64_t{256} << 20U;  ///< of all values that the run makes, its output among them
  int64_t depth = 800;                         ///< of what is evaluated within something that is evaluated
};

class JinjaTemplate {
 public:
  /// Throws: JinjaError.
  explicit JinjaTemplate(std::string_view source);
  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;
  ~JinjaTemplate();

  /// `now`: what strftime_now tells of. Thread-safe. Throws: JinjaError.
  std::string render(const JinjaDataMap& variables, const std::tm& now, const JinjaLimits& limits = {}) const;

 private:
  struct Program;
  std::unique_ptr<const Program> program_;
};

}  // namespace lancet
