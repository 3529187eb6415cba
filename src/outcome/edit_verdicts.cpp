#include "lancet/outcome/edit_verdicts.h"

#include <algorithm>
#include <array>

#include "lancet/core/strings.h"
#include "lancet/core/words.h"
#include "lancet/outcome/edit_report.h"
#include "value_goal.h"

namespace lancet {
namespace {

/// Whether all of a request's outcomes are right by a metric; nullopt: not measured.
std::optional<bool> is_right(const Evaluation& after, size_t request, const char* metric) {
  if (request >= after.requests.size()) return std::nullopt;
  const auto tally = after.requests[request].find(metric);
  if (tally == after.requests[request].end() || !tally->second.mean()) return std::nullopt;
  return *tally->second.mean() == 1;
}

/// "case 7 and case 9"; of a request with equals alone.
std::string others_text(const EditReport& report, const std::vector<int64_t>& group, int64_t request) {
  std::vector<int64_t> others;
  std::copy_if(group.begin(), group.end(), std::back_inserter(others), [&](int64_t each) { return each != request; });
  const std::string first = report.requests[static_cast<size_t>(others.front())].id;
  return others.size() == 1 ? first : cat(first, " and ", counted(others.size() - 1, "other"));
}

/// Names those with whom the request shares its key; empty: there are none.
std::string sharers_of(const EditReport& report, int64_t request) {
  for (const SharedKeys& keys : report.outcome.shared_keys)
    for (const std::vector<int64_t>& group : keys.groups)
      if (std::find(group.begin(), group.end(), request) != group.end()) return others_text(report, group, request);
  return {};
}

/// Batches that were edited after the request's own.
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

Verdict judge(const EditReport& report, size_t request, const ValueGoal& goal) {
  const std::optional<bool> says = says_target(report.after, request);
  if (!says) return {FailureCause::kNotMeasured};
  if (*says) return {FailureCause::kNone};
  const RequestOutcome& outcome = report.outcome.requests[request];
  if (!outcome.skipped.empty()) return {FailureCause::kLeftOut, cat("left out: ", outcome.skipped)};
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
  return {FailureCause::kOther, other_text(report, request)};
}

}  // namespace

std::string_view cause_name(FailureCause cause) {
  constexpr std::array<std::string_view, 6> kNames{"none",           "left_out", "value_not_found",
                                                   "did_not_follow", "other",    "not_measured"};
  return kNames[static_cast<size_t>(cause)];
}

std::optional<bool> says_target(const Evaluation& after, size_t request) {
  return is_right(after, request, kSuccessMetric);
}

std::vector<Verdict> judge_edits(const EditReport& report, const ConfigTree& editor) {
  const ValueGoal goal(editor);
  std::vector<Verdict> verdicts;
  for (size_t i = 0; i < report.requests.size(); ++i) verdicts.push_back(judge(report, i, goal));
  return verdicts;
}

SuccessCount count_successes(const EditReport& report) {
  SuccessCount count;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.cause != FailureCause::kNotMeasured) ++count.measured;
    if (verdict.cause == FailureCause::kNone) ++count.successes;
  }
  for (size_t i = 0; i < report.requests.size(); ++i)
    if (const std::optional<bool> writes = is_right(report.after, i, kWrittenMetric))
      count.written = count.written.value_or(0) + (*writes ? 1 : 0);
  return count;
}

std::string success_text(const SuccessCount& count) {
  if (count.measured == 0) return "whether the edits took was not measured: add efficacy to evaluate";
  return cat(count_text(count.successes), " of ", counted(count.measured, "edit"), " took (the model says the target, ",
             kSuccessMetric, ")",
             count.written ? cat("; it writes ", count_text(*count.written), " freely (", kWrittenMetric, ")") : "");
}

}  // namespace lancet
