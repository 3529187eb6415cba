// Judges each edit: whether it took, as measured on the weights that are exported, and if not, why. The reasons follow
// from what its value reached, how far the weights followed, and what interfered. The same facts, over all requests,
// give the warnings.
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

/// The metric that decides whether an edit took: all outcomes of a request must be right.
inline constexpr const char* kSuccessMetric = "efficacy_argmax";
/// The metric that tells whether the model itself writes a request's target after the prompt, whatever text follows.
inline constexpr const char* kWrittenMetric = "generation_starts";
/// Whether the model's answer has the target in it, where the prompt is a user's message.
inline constexpr const char* kChatMetric = "chat_contains";

/// Why an edit did not take. If several causes hold, the first one counts.
enum class FailureCause {
  kNone,           ///< the edit took
  kLeftOut,        ///< the method skipped the request
  kCollides,       ///< the model says another request's target
  kValueNotFound,  ///< neither a hidden state nor training made the model say the target
  kDidNotFollow,   ///< a hidden state did, but the weights moved less than half of the way to it
  kOther,          ///< none of these: perhaps other edits, rounding, or contexts
  kNotMeasured     ///< `efficacy` was not evaluated
};
/// Returns "none", "left_out", "collides", "value_not_found", "did_not_follow", "other" or "not_measured".
std::string_view cause_name(FailureCause cause);

struct Verdict {
  FailureCause cause = FailureCause::kNotMeasured;
  std::string why = {};  ///< why the edit did not take, as a sentence
};

/// Whether the model says the request's target, according to kSuccessMetric; nullopt: not measured.
std::optional<bool> says_target(const Evaluation& after, size_t request);

/// Judges each edit, in the order of the requests. `editor`: the resolved section of the job.
std::vector<Verdict> judge_edits(const EditReport& report, const ConfigTree& editor);

/// How many edits took, and for how many this was measured.
struct SuccessCount {
  size_t successes = 0;
  size_t measured = 0;
  /// Number of edits whose target the model writes, according to kWrittenMetric; nullopt: not measured.
  std::optional<size_t> written = {};
  /// Number of edits that hold in a chat, according to kChatMetric; nullopt: not measured.
  std::optional<size_t> in_chat = {};

  bool none() const { return measured > 0 && successes == 0; }
};
SuccessCount count_successes(const EditReport& report);

/// Returns "86 of 100 edits took (the model says the target, efficacy_argmax); for 58 its own text begins
/// with the target (generation_starts); in a chat 45 hold (chat_contains)", or how to get this measured.
std::string success_text(const SuccessCount& count);

/// Returns what went wrong for many requests: one line per cause, with its numbers and what to do.
std::vector<std::string> edit_warnings(const EditReport& report, const ConfigTree& editor);

}  // namespace lancet
