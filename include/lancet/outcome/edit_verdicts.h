// Whether each edit took, by what the weights that are exported say, and if not, why: from what its value reached, how
// far the weights followed, and what came in its way. The same facts of all requests together make the warnings.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/eval/evaluate.h"

namespace lancet {

struct EditReport;

/// The metric by which an edit took: all of a request's outcomes are right.
inline constexpr const char* kSuccessMetric = "efficacy_argmax";
/// The metric by which the model writes a request's target when nothing of it is given, whatever it goes on with.
inline constexpr const char* kWrittenMetric = "generation_starts";

/// Why an edit did not take: of the causes, the first that holds.
enum class FailureCause {
  kNone,           ///< the edit took
  kLeftOut,        ///< the method left the request out
  kCollides,       ///< the model says another request's target
  kValueNotFound,  ///< no hidden state (or training) made the model say the target
  kDidNotFollow,   ///< one did, and the weights came less than half of the way to it
  kOther,          ///< neither: other edits, rounding, contexts
  kNotMeasured     ///< `efficacy` was not evaluated
};
/// "none", "left_out", "collides", "value_not_found", "did_not_follow", "other", "not_measured".
std::string_view cause_name(FailureCause cause);

struct Verdict {
  FailureCause cause = FailureCause::kNotMeasured;
  std::string why = {};  ///< reason why an edit did not take, in a sentence
};

/// Whether the model says the request's target, by kSuccessMetric; nullopt: not measured.
std::optional<bool> says_target(const Evaluation& after, size_t request);

/// Judges each edit, by request. `editor`: the resolved section of the job.
std::vector<Verdict> judge_edits(const EditReport& report, const ConfigTree& editor);

/// How many edits took, and of how many that was measured.
struct SuccessCount {
  size_t successes = 0;
  size_t measured = 0;
  std::optional<size_t> written =
      {};  ///< edits whose target the model writes, by kWrittenMetric; nullopt: not measured

  bool none() const { return measured > 0 && successes == 0; }
};
SuccessCount count_successes(const EditReport& report);

/// "86 of 100 edits took (the model says the target, efficacy_argmax); for 58 it begins its own text with the target
/// (generation_starts)", or how to have it measured.
std::string success_text(const SuccessCount& count);

/// What went wrong for many requests: a line for each cause, with its numbers and what to do.
std::vector<std::string> edit_warnings(const EditReport& report, const ConfigTree& editor);

}  // namespace lancet
