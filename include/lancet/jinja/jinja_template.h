// Jinja templates, the language of checkpoints' chat templates: parsed once, and run within limits.
//
// A template gives the same text as in jinja2's sandbox as transformers configures it (ImmutableSandboxedEnvironment
// with trim_blocks and lstrip_blocks, loop controls, the tag `generation`, its own `tojson`, `raise_exception` and
// `strftime_now`), or an error. For features of jinja2 that lancet does not support, the error names the feature and
// the line.
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

/// A template cannot be parsed, or it failed. Has the problem and the template's line.
class JinjaError : public Error {
 public:
  enum class Cause {
    kTemplate,  ///< an error in the template, or in its use of the data
    kRaised,    ///< the template called raise_exception(message)
    kLimit      ///< it took too many steps, too much memory or nested too deeply
  };

  JinjaError(Cause cause, std::string reason, int64_t line);

  Cause cause() const { return cause_; }
  /// Returns the message without the line. For kRaised, it is the template's own message.
  const std::string& reason() const { return reason_; }
  int64_t line() const { return line_; }

 private:
  Cause cause_;
  std::string reason_;
  int64_t line_;
};

struct JinjaData;
using JinjaDataList = std::vector<JinjaData>;
using JinjaDataMap = std::vector<std::pair<std::string, JinjaData>>;  ///< in order, without repeated keys

/// The data for a template: None, or any JSON value.
struct JinjaData {
  std::variant<std::monostate, bool, int64_t, double, std::string, JinjaDataList, JinjaDataMap> value = {};
};

/// The limits of a run. The defaults are far above what public templates need for long conversations.
struct JinjaLimits {
  int64_t steps = 4'000'000;                   ///< evaluated parts of the template, and other work of the same duration
  int64_t memory_bytes = int64_t{256} << 20U;  ///< memory of all values that the run makes, its output included
  int64_t depth = 800;                         ///< nesting depth of evaluation
};

class JinjaTemplate {
 public:
  /// Parses the template. Throws: JinjaError.
  explicit JinjaTemplate(std::string_view source);
  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;
  ~JinjaTemplate();

  /// Runs the template. `now`: the time for strftime_now. Thread-safe. Throws: JinjaError.
  std::string render(const JinjaDataMap& variables, const std::tm& now, const JinjaLimits& limits = {}) const;

 private:
  struct Program;
  std::unique_ptr<const Program> program_;
};

}  // namespace lancet
