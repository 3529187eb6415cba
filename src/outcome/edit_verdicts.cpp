#include "lancet/outcome/edit_verdicts.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "failure_reasons.h"
#include "lancet/core/strings.h"
#include "lancet/job/dotted_key.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/outcome/subject_verdict.h"
#include "lancet/requests/same_fact.h"
#include "moved_weights.h"
#include "remedies.h"
#include "value_goal.h"

namespace lancet {
namespace {

/// Whether all outcomes of a request are right in a metric; nullopt if it was not measured.
std::optional<bool> is_right(const Evaluation& after, size_t request, const char* metric) {
  if (request >= after.requests.size()) return std::nullopt;
  const auto tally = after.requests[request].find(metric);
  if (tally == after.requests[request].end() || !tally->second.mean()) return std::nullopt;
  return *tally->second.mean() == 1;
}

/// Returns "case 7 and case 9": the other requests of a group.
std::string others_text(const EditReport& report, const std::vector<int64_t>& group, int64_t request) {
  std::vector<int64_t> others;
  std::copy_if(group.begin(), group.end(), std::back_inserter(others), [&](int64_t each) { return each != request; });
  const std::string first = report.requests[static_cast<size_t>(others.front())].id;
  return others.size() == 1 ? first : cat(first, " and ", counted(others.size() - 1, "other"));
}

/// Names the requests that have the same key as this one; empty if there are none.
std::string sharers_of(const EditReport& report, int64_t request) {
  for (const SharedKeys& keys : report.outcome.shared_keys)
    for (const std::vector<int64_t>& group : keys.groups)
      if (std::find(group.begin(), group.end(), request) != group.end()) return others_text(report, group, request);
  return {};
}

/// Returns the number of batches that were edited after the request's own.
size_t batches_after(const EditReport& report, size_t request) {
  for (size_t i = 0; i < report.batches.size(); ++i) {
    const std::vector<int64_t>& batch = report.batches[i].requests;
    if (std::find(batch.begin(), batch.end(), static_cast<int64_t>(request)) != batch.end())
      return report.batches.size() - 1 - i;
  }
  return 0;
}

std::string other_text(const EditReport& report, size_t request) {
  const RequestOutcome& outcome = report.outcome.requests[request];
  std::vector<std::string> parts;
  if (outcome.final_loss) parts.push_back(cat("final loss ", short_number(*outcome.final_loss)));
  if (outcome.realised) parts.push_back(cat("the weights followed ", percent(*outcome.realised), " of the way"));
  if (request < report.after.target_probabilities.size()) {
    const std::string before = request < report.before.target_probabilities.size()
                                   ? cat(" (", percent(report.before.target_probabilities[request]), " before)")
                                   : "";
    parts.push_back(cat("P(target) ", percent(report.after.target_probabilities[request]), before));
  }
  const size_t later = batches_after(report, request);
  return cat(join(parts), parts.empty() ? "" : ": ", "another token is likelier",
             later > 0 ? cat(" (", later, later == 1 ? " batch" : " batches", " came after it)") : "");
}

/// `held`: what kept all changes too small, if something did.
Verdict judge(const EditReport& report, size_t request, const ConfigTree& editor,
              const std::optional<HeldChange>& held) {
  const ValueGoal goal(editor);
  const std::optional<bool> says = says_target(report.after, request);
  if (!says) return {FailureCause::kNotMeasured};
  if (*says) return {FailureCause::kNone};
  const RequestOutcome& outcome = report.outcome.requests[request];
  if (!outcome.skipped.empty()) return {FailureCause::kLeftOut, cat("left out: ", outcome.skipped)};
  if (const std::optional<size_t> other = collides_with(report, request))
    return {FailureCause::kCollides,
            cat("collides with ", report.requests[*other].id, ": the model now says its target, '",
                report.requests[*other].target, "', here too")};
  if (held) return {FailureCause::kValueNotFound, held->reason};
  if (outcome.final_loss && !goal.is_found(outcome))
    return {FailureCause::kValueNotFound, cat("value not found: final loss ", short_number(*outcome.final_loss),
                                              " after ", counted(static_cast<size_t>(outcome.steps), "step"),
                                              goal.has_stalled(outcome) ? ", and it no longer fell" : "")};
  if (outcome.realised && *outcome.realised < kFollowed) {
    const std::string sharers = sharers_of(report, static_cast<int64_t>(request));
    return {FailureCause::kDidNotFollow,
            cat("the weights followed ", percent(*outcome.realised), " of the way to its value",
                sharers.empty() ? "" : cat(": it shares its key with ", sharers))};
  }
  return {FailureCause::kOther, cat(other_text(report, request), left_undone(editor))};
}

}  // namespace

std::string_view cause_name(FailureCause cause) {
  constexpr std::array<std::string_view, 7> kNames{"none",           "left_out", "collides",    "value_not_found",
                                                   "did_not_follow", "other",    "not_measured"};
  return kNames[static_cast<size_t>(cause)];
}

std::optional<bool> says_target(const Evaluation& after, size_t request) {
  return is_right(after, request, kSuccessMetric);
}

std::vector<Verdict> judge_edits(const EditReport& report, const ConfigTree& editor) {
  const std::optional<HeldChange> held = held_change(report, editor);
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < report.requests.size(); ++i) verdicts.push_back(judge(report, i, editor, held));
  return verdicts;
}

SuccessCount count_successes(const EditReport& report) {
  SuccessCount count;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.cause != FailureCause::kNotMeasured) ++count.measured;
    if (verdict.cause == FailureCause::kNone) ++count.successes;
  }
  const auto count_right = [&](const char* metric) {
    std::optional<size_t> right;
    for (size_t i = 0; i < report.requests.size(); ++i)
      if (const std::optional<bool> is = is_right(report.after, i, metric)) right = right.value_or(0) + (*is ? 1 : 0);
    return right;
  };
  count.written = count_right(kWrittenMetric);
  count.in_chat = count_right(kChatMetric);
  return count;
}

std::string success_text(const SuccessCount& count) {
  if (count.measured == 0) return "whether the edits took was not measured: add efficacy to evaluate";
  return cat(count_text(count.successes), " of ", counted(count.measured, "edit"), " took (the model says the target, ",
             kSuccessMetric, ")",
             count.written ? cat("; for ", count_text(*count.written), " its own text begins with the target (",
                                 kWrittenMetric, ")")
                           : "",
             count.in_chat ? cat("; in a chat ", count_text(*count.in_chat),
                                 *count.in_chat == 1 ? " holds (" : " hold (", kChatMetric, ")")
                           : "");
}

// The warnings of an edit: one line for each cause, however many requests have it.

namespace {

constexpr size_t kShownRequests = 4;
constexpr double kMuchLost = 0.5;  // share of a change that is lost in rounding

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Returns for example "7 ('Paris' after 'Oracle is located in')".
std::string request_text(const EditRequest& request) {
  if (request.prompt.text.empty()) return request.id;
  return cat(request.id, " ('", excerpt(request.target, 40), "' after '", excerpt(request.prompt.text, 60), "')");
}

/// Returns the requests by their ids and facts: "a, b and c"; of a long list only the first ones.
std::string requests_text(const EditReport& report, const std::vector<int64_t>& requests) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(requests.size(), kShownRequests); ++i)
    texts.push_back(request_text(report.requests[static_cast<size_t>(requests[i])]));
  if (requests.size() > kShownRequests) return cat(join(texts), " and ", requests.size() - kShownRequests, " more");
  const std::string last = texts.back();
  texts.pop_back();
  return texts.empty() ? last : cat(join(texts), " and ", last);
}

bool is_one_fact(const EditReport& report, const std::vector<int64_t>& group) {
  LatestFacts facts;
  const auto joins = [&](int64_t request) {
    return facts.replace(report.requests[static_cast<size_t>(request)]) != nullptr;
  };
  joins(group.front());
  return std::all_of(group.begin() + 1, group.end(), joins);
}

/// Leaves out groups that have one fact with several targets: `at_odds` reports their contradiction.
SharedKeys without_contradictions(const EditReport& report, SharedKeys keys) {
  if (!report.at_odds.empty())
    std::erase_if(keys.groups, [&](const std::vector<int64_t>& group) { return is_one_fact(report, group); });
  return keys;
}

std::string shared_keys_text(const EditReport& report, const SharedKeys& keys) {
  size_t n = 0;
  for (const std::vector<int64_t>& group : keys.groups) n += group.size();
  const std::string example = requests_text(report, keys.groups.front());
  if (keys.groups.size() == 1) return cat("requests ", example, " ", keys.effect);
  return cat(counted(n, "request"), " in ", counted(keys.groups.size(), "group"), ", as ", example, ", ", keys.effect);
}

/// An option that makes changes smaller, and how to make it weaker or stronger.
struct Brake {
  std::string_view key;
  std::string_view share;  ///< key of its automatic choice, {SHARE: A}; empty if it has none
  std::string_view more, less;
};
constexpr Brake kBrakes[] = {{"covariance_weight", "realised_share", "lower", "raise"},
                             {"ridge", "realised_share", "lower", "raise"},
                             {"null_space_below", "share", "raise", "lower"},
                             {"slack", "", "lower", "raise"},
                             {"rect.keep", "", "raise", "lower"}};

std::string remedy_text(const ConfigTree& editor, const Brake& brake) {
  if (brake.share.empty()) return cat(brake.more, " editor.", brake.key);
  if (number_at(editor, brake.key)) return cat("set editor.", brake.key, ": auto, or ", brake.more, " it");
  return cat("set editor.", brake.key, ": {", brake.share, ": A} with a larger A");
}

/// Returns ", held back by editor.covariance_weight: 15000. What helps: set editor.covariance_weight: auto, or lower
/// it".
std::string brakes_text(const ConfigTree& editor) {
  std::vector<std::string> settings, remedies;
  for (const Brake& brake : kBrakes)
    if (const ConfigTree* value = find_dotted(editor, brake.key)) {
      settings.push_back(cat("editor.", brake.key, ": ", to_line(*value)));
      remedies.push_back(remedy_text(editor, brake));
    }
  if (settings.empty()) return "";
  return cat(", held back by ", join(settings), ". What helps: ", join(remedies, "; "));
}

/// The outcomes of all requests, sorted by what happened to their values.
struct Sorted {
  /// Realised shares of requests whose value was found, and whose key no other request has.
  std::vector<double> realised;
  std::vector<double> found_losses, missed_losses, stalled_losses, stuck_losses, first_losses;
  size_t n_clamped = 0, n_risen = 0;  ///< of missed and stalled values, and of stuck ones
  std::vector<int64_t> stalled;       ///< indices of requests, in the order of stalled_losses
};

Sorted sort_outcomes(const EditReport& report, const ValueGoal& goal) {
  std::set<int64_t> sharing;
  for (const SharedKeys& keys : report.outcome.shared_keys)
    for (const std::vector<int64_t>& group : keys.groups) sharing.insert(group.begin(), group.end());
  Sorted sorted;
  for (size_t i = 0; i < report.outcome.requests.size(); ++i) {
    const RequestOutcome& outcome = report.outcome.requests[i];
    if (!outcome.skipped.empty() || !outcome.final_loss) continue;
    if (goal.is_found(outcome)) {
      sorted.found_losses.push_back(*outcome.final_loss);
      if (outcome.realised && !sharing.contains(static_cast<int64_t>(i))) sorted.realised.push_back(*outcome.realised);
    } else if (i < report.verdicts.size() && report.verdicts[i].cause == FailureCause::kNone) {
      continue;  // the edit succeeded although its value was not found
    } else if (goal.never_fell(outcome)) {
      sorted.stuck_losses.push_back(*outcome.final_loss);
      sorted.first_losses.push_back(*outcome.initial_loss);
      if (goal.is_clamped(outcome) || *outcome.final_loss > 1.2 * *outcome.initial_loss) ++sorted.n_risen;
    } else {
      if (goal.has_stalled(outcome)) sorted.stalled.push_back(static_cast<int64_t>(i));
      (goal.has_stalled(outcome) ? sorted.stalled_losses : sorted.missed_losses).push_back(*outcome.final_loss);
      if (goal.is_clamped(outcome)) ++sorted.n_clamped;
    }
  }
  return sorted;
}

std::string stuck_text(const Sorted& sorted, const ValueGoal& goal, size_t n_requests) {
  const size_t n = sorted.stuck_losses.size();
  const std::string what = cat("the loss of ", n, " of ", counted(n_requests, "request"),
                               " never fell: ", short_number(median(sorted.first_losses)), " at the first step, ",
                               short_number(median(sorted.stuck_losses)), " at the last (medians). ");
  if (goal.number("steps") == 1) return cat(what, goal.setting("steps"), " makes no update: raise it");
  const bool diverged = 2 * sorted.n_risen > n;
  return cat(what, goal.setting("lr"),
             diverged ? " is too large, the steps diverge: lower it" : " is too small: raise it");
}

/// Returns ", or a larger editor.values.clamp (now 4), which 3 reached"; empty if none did.
std::string clamp_text(const Sorted& sorted, const ValueGoal& goal) {
  if (sorted.n_clamped == 0) return "";
  return cat(", or a larger ", goal.key("clamp"), " (now ", *goal.number("clamp"), "), which ", sorted.n_clamped,
             " reached");
}

std::string more_steps_text(const ValueGoal& goal) {
  constexpr double kMost = AutomaticSteps::kMost;
  const double now = goal.number("steps").value_or(kMost);
  if (goal.has_automatic_steps() && now < kMost)
    return cat(goal.key("steps"), ": auto (now ", now, "), with which each goes on while its loss falls, up to ",
               kMost);
  return cat(goal.key("steps"), ": ", 2 * now, " (now ", goal.number("steps") ? "" : "auto: ", now,
             "), since their losses still fell");
}

std::string missed_text(const Sorted& sorted, const ValueGoal& goal, size_t n_requests) {
  const std::string stop = goal.number("stop_loss") ? cat(", stop_loss ", short_number(*goal.number("stop_loss"))) : "";
  return cat("the values of ", sorted.missed_losses.size(), " of ", counted(n_requests, "request"),
             " were not found: final loss ", short_number(median(sorted.missed_losses)), " in the median", stop,
             ". What helps: ", more_steps_text(goal), clamp_text(sorted, goal));
}

/// Does not recommend more steps if they have been tried.
std::string stalled_text(const EditReport& report, const Sorted& sorted, const ValueGoal& goal) {
  return cat("the model does not take in ", sorted.stalled.size(), " of ",
             counted(report.outcome.requests.size(), "request"), " this way (", requests_text(report, sorted.stalled),
             "): their losses stayed at ", short_number(median(sorted.stalled_losses)),
             " in the median, and more steps would not bring them down. Try other editor.layers, another method",
             clamp_text(sorted, goal), "; a small model may be too small for the fact");
}

}  // namespace

std::vector<std::string> smaller_changes(const ConfigTree& editor) {
  std::vector<std::string> remedies;
  for (const Brake& brake : kBrakes) {
    if (find_dotted(editor, brake.key) == nullptr) continue;
    if (brake.share.empty() || number_at(editor, brake.key))
      remedies.push_back(cat(brake.less, " editor.", brake.key));
    else
      remedies.push_back(cat("set editor.", brake.key, ": {", brake.share, ": A} with a smaller A"));
  }
  if (const std::optional<double> clamp = number_at(editor, "values.clamp"))
    remedies.push_back(cat("lower editor.values.clamp (now ", *clamp, ")"));
  if (remedies.empty() && number_at(editor, "lr")) remedies.emplace_back("lower editor.lr");
  return remedies;
}

namespace {

/// Returns a warning if fewer than half of the edits that took hold in a chat; empty otherwise, or if not measured.
std::string chat_warning(const EditReport& report, const ConfigTree& editor) {
  const SuccessCount count = count_successes(report);
  if (!count.in_chat || 2 * *count.in_chat >= count.successes) return "";
  return cat("in a chat only ", *count.in_chat, " of the ", counted(count.successes, "edit"), " that took ",
             *count.in_chat == 1 ? "holds" : "hold", " (", kChatMetric, ")",
             find_dotted(editor, "contexts.chat") == nullptr
                 ? ": they were made in plain text alone. What helps: editor.contexts: {chat: model}"
                 : "");
}

std::string requantised_text(const EditReport& report) {
  std::vector<std::string> lost;
  for (const RequantisedWeight& weight : report.requantised)
    if (weight.edit_lost > kMuchLost) lost.push_back(cat(weight.name, " (", percent(weight.edit_lost), ")"));
  if (lost.empty()) return "";
  return cat("bringing the edited weights back into the model's format lost more than half of the edit in ", join(lost),
             ": lower output.covariance_weight, or write output.format: mixed or adapter");
}

std::string rounding_text(const EditReport& report) {
  if (!report.requantised.empty()) return requantised_text(report);
  std::vector<std::pair<std::string, RoundingLoss>> lost;
  for (const auto& weight : report.rounding)
    if (weight.second.relative_loss > kMuchLost) lost.push_back(weight);
  if (lost.empty()) return "";
  const auto most = std::max_element(lost.begin(), lost.end(), [](const auto& a, const auto& b) {
    return a.second.relative_loss < b.second.relative_loss;
  });
  return cat("rounding to the type that the model is stored in lost ", percent(most->second.relative_loss),
             " of the change of ", most->first,
             lost.size() > 1 ? cat(" (and more than half of ", counted(lost.size() - 1, "other change"), ")") : "",
             ": it is ", percent(most->second.growth()),
             " of the weight's norm, too small for the type. A model stored in F32 keeps it");
}

}  // namespace

std::vector<std::string> edit_warnings(const EditReport& report, const ConfigTree& editor) {
  std::vector<std::string> warnings;
  for (const SharedKeys& all : report.outcome.shared_keys)
    if (const SharedKeys keys = without_contradictions(report, all); !keys.groups.empty())
      warnings.push_back(shared_keys_text(report, keys));
  const ValueGoal goal(editor);
  const Sorted sorted = sort_outcomes(report, goal);
  const size_t n = report.outcome.requests.size();
  if (const std::optional<HeldChange> held = held_change(report, editor)) {
    warnings.push_back(cat("most edits did not take: ", held->reason, ". What helps: ", held->remedy));
    return warnings;
  }
  if (!sorted.stuck_losses.empty()) warnings.push_back(stuck_text(sorted, goal, n));
  if (!sorted.missed_losses.empty()) warnings.push_back(missed_text(sorted, goal, n));
  if (!sorted.stalled_losses.empty()) warnings.push_back(stalled_text(report, sorted, goal));
  if (!sorted.realised.empty() && median(sorted.realised) < kFollowed)
    warnings.push_back(cat("the values were found (final loss ", short_number(median(sorted.found_losses)),
                           " in the median), but the weights did not follow: ", percent(median(sorted.realised)),
                           " of the way in the median of ", counted(sorted.realised.size(), "request"),
                           brakes_text(editor)));
  if (const std::string moved = moved_warning(report, editor); !moved.empty()) warnings.push_back(moved);
  if (const std::string lost = subject_warning(report, editor); !lost.empty()) warnings.push_back(lost);
  if (const std::string chat = chat_warning(report, editor); !chat.empty()) warnings.push_back(chat);
  if (const std::string rounding = rounding_text(report); !rounding.empty()) warnings.push_back(rounding);
  return warnings;
}

}  // namespace lancet
