#include "lancet/outcome/subject_verdict.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lancet/core/strings.h"
#include "lancet/job/dotted_key.h"
#include "lancet/outcome/edit_report.h"
#include "remedies.h"

namespace lancet {
namespace {

int64_t whole_sum(const Tally& tally) { return static_cast<int64_t>(tally.sum + 0.5); }

/// Returns what damages a subject less, for the options that the method has.
std::vector<std::string> gentler_edits(const ConfigTree& editor) {
  std::vector<std::string> remedies;
  if (const std::string spread = spread_remedy(editor); !spread.empty()) remedies.push_back(spread);
  const std::optional<double> kl = number_at(editor, "values.kl");
  if (const ConfigTree* kept = find_dotted(editor, "values.kept_prompts"); kl && (!kept || kept->items.empty()))
    remedies.push_back("name other prompts about a subject in editor.values.kept_prompts, for example '{} can'");
  if (kl)
    remedies.push_back(
        cat("raise editor.values.kl (now ", *kl, "), which holds what the model says after '{subject} is a'"));
  if (const std::optional<double> clamp = number_at(editor, "values.clamp"))
    remedies.push_back(cat("lower editor.values.clamp (now ", *clamp, ")"));
  return remedies.empty() ? smaller_changes(editor) : remedies;
}

constexpr int64_t kFewestPrompts = 3;  // of one subject: fewer say little about it
constexpr size_t kShownSubjects = 3;

/// Returns "Oracle (1 of 4 other prompts go on as before)" for each subject that keeps less than half, the worst first.
std::vector<std::string> lost_subjects(const EditReport& report) {
  struct Lost {
    double share = 0;
    std::string text;
  };
  std::vector<Lost> lost;
  for (size_t i = 0; i < report.requests.size(); ++i) {
    SubjectCount count;
    for (const ComparedAnswer& answer : compared_answers(report, i)) {
      if (answer.asked != AskedFor::kNextToken) continue;
      ++count.prompts;
      count.kept += answer.is_kept() ? 1 : 0;
    }
    if (count.prompts < kFewestPrompts || count.share() >= kLeastKeptOfOne) continue;
    lost.push_back({count.share(), cat(report.requests[i].subject, " (", count.kept, " of ", count.prompts,
                                       " other prompts go on as before)")});
  }
  std::ranges::stable_sort(lost, {}, &Lost::share);
  std::vector<std::string> texts;
  for (Lost& one : lost) texts.push_back(std::move(one.text));
  return texts;
}

/// The warning where the mean over all subjects hides some that are lost.
std::string lost_subjects_text(const std::vector<std::string>& lost, const ConfigTree& editor) {
  if (lost.empty()) return "";
  const size_t shown = std::min(lost.size(), kShownSubjects);
  const std::string more = lost.size() > shown ? cat(" and ", lost.size() - shown, " more") : "";
  return cat("most of what the model says about ", counted(lost.size(), "subject"),
             " has changed, although the mean is high: ", join(std::span(lost).first(shown)), more,
             what_helps(gentler_edits(editor)));
}

}  // namespace

std::optional<SubjectCount> count_subjects(const EditReport& report) {
  const auto kept = report.after.totals.find(kSubjectMetric), leaked = report.after.totals.find(kLeakMetric);
  if (kept == report.after.totals.end() || kept->second.count == 0) return std::nullopt;
  SubjectCount count{.kept = whole_sum(kept->second), .prompts = kept->second.count};
  if (leaked != report.after.totals.end()) {
    count.leaks = whole_sum(leaked->second);
    count.texts = leaked->second.count;
  }
  return count;
}

std::string subject_text(const SubjectCount& count) {
  const std::string figure = cat(kSubjectMetric, " ", percent(count.share()));
  const std::string cases = cat(count.kept, " of ", count.prompts);
  const std::string leaks = count.leaks == 0
                                ? ""
                                : cat("; after '{subject} is' it writes the new target for ", count.leaks, " of ",
                                      counted(static_cast<size_t>(count.texts), "request"), " (", kLeakMetric, ")");
  if (!count.is_low())
    return cat("other prompts about the edited subjects go on as before in ", cases, " cases (", figure, ")", leaks);
  return cat("but the subjects are no longer what they were: other prompts about them go on as before in only ", cases,
             " cases (", figure, ", below ", percent(kLeastKept), ")", leaks);
}

std::string subject_warning(const EditReport& report, const ConfigTree& editor) {
  const std::optional<SubjectCount> count = count_subjects(report);
  if (!count) return "";
  if (!count->is_low()) return lost_subjects_text(lost_subjects(report), editor);
  return cat("the edits changed more of their subjects than the facts that were asked for: after ",
             count->prompts - count->kept, " of ", counted(static_cast<size_t>(count->prompts), "other prompt"),
             " about them the model goes on otherwise (", kSubjectMetric, " ", percent(count->share()), ", below ",
             percent(kLeastKept), ")", what_helps(gentler_edits(editor)));
}

std::vector<ComparedAnswer> compared_answers(const EditReport& report, size_t request) {
  const std::vector<std::vector<SubjectAnswer>>&before = report.before.subject_answers,
        &after = report.after.subject_answers;
  std::vector<ComparedAnswer> compared;
  if (request >= before.size() || request >= after.size() || before[request].size() != after[request].size())
    return compared;
  for (size_t i = 0; i < after[request].size(); ++i)
    compared.push_back(
        {after[request][i].asked, after[request][i].prompt, before[request][i].text, after[request][i].text});
  return compared;
}

}  // namespace lancet
