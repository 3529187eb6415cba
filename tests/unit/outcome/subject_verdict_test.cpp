// What is told of the subjects of edits, from reports made by hand.
#include "lancet/outcome/subject_verdict.h"

#include <gtest/gtest.h>

#include "lancet/core/strings.h"
#include "lancet/outcome/edit_report.h"

namespace lancet {
namespace {

EditReport kept_report(double kept, int64_t prompts, Tally leaks = {}) {
  EditReport report;
  report.after.totals[kSubjectMetric] = {kept, prompts};
  report.after.totals[kLeakMetric] = leaks;
  return report;
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const ConfigTree kReplayed =
    parse_config("{method: memit, targets: auto, values: {steps: auto, clamp: 4, kl: 0.0625}}", "test");

TEST(Subjects, AreToldBesideWhatTook) {
  const EditReport report = kept_report(14, 16, {1, 2});
  EXPECT_EQ(subject_text(*count_subjects(report)),
            "other prompts about the edited subjects go on as before in 14 of 16 cases (subject_kept 87.5 %); after "
            "'{subject} is' it writes the new target for 1 of 2 requests (subject_leak)");
  EXPECT_EQ(subject_warning(report, kReplayed), "");
}

TEST(Subjects, ThatAreWreckedAreNoPlainSuccess) {
  const EditReport report = kept_report(6, 16);
  EXPECT_EQ(subject_text(*count_subjects(report)),
            "but the subjects are no longer what they were: other prompts about them go on as before in only 6 of 16 "
            "cases (subject_kept 37.5 %, below 70.0 %)");
  const std::string warning = subject_warning(report, kReplayed);
  for (const char* part :
       {"after 10 of 16 other prompts about them the model goes on otherwise", "subject_kept 37.5 %, below 70.0 %",
        "set editor.targets: last", "name other prompts about a subject in editor.values.kept_prompts",
        "raise editor.values.kl (now 0.0625)", "lower editor.values.clamp (now 4)"})
    EXPECT_TRUE(mentions(warning, part)) << warning;
  const ConfigTree held = parse_config("{method: memit, values: {kl: 0.0625, kept_prompts: ['{} can']}}", "test");
  EXPECT_FALSE(mentions(subject_warning(report, held), "kept_prompts")) << "it has some";
  EXPECT_TRUE(mentions(subject_warning(report, parse_config("{method: ft, lr: 0.1}", "test")), "lower editor.lr"));
}

TEST(Subjects, AreLowBelowTheLimitAlone) {
  EXPECT_FALSE(count_subjects(kept_report(7, 10))->is_low());
  EXPECT_TRUE(count_subjects(kept_report(69, 100))->is_low());
}

TEST(Subjects, ThatAreLostAreNamedWhereTheMeanHidesThem) {
  EditReport report = kept_report(9, 12);
  const auto subject = [&](const char* name, const std::vector<const char*>& now) {
    report.requests.emplace_back();
    report.requests.back().subject = name;
    report.before.subject_answers.emplace_back();
    report.after.subject_answers.emplace_back();
    for (const char* text : now) {
      report.before.subject_answers.back().push_back({AskedFor::kNextToken, "prompt", "a"});
      report.after.subject_answers.back().push_back({AskedFor::kNextToken, "prompt", text});
    }
  };
  subject("Kept", {"a", "a", "a", "a"});
  subject("Half", {"a", "a", "b", "b"});
  subject("Few", {"b", "b"});
  EXPECT_EQ(subject_warning(report, kReplayed), "");
  subject("Worse", {"a", "b", "b"});
  subject("Worst", {"b", "b", "b"});
  const std::string warning = subject_warning(report, kReplayed);
  for (const char* part : {"about 2 subjects has changed, although the mean is high: Worst (0 of 3 other prompts go on "
                           "as before), Worse (1 of 3 other prompts",
                           "raise editor.values.kl (now 0.0625)"})
    EXPECT_TRUE(mentions(warning, part)) << warning;
  report.after.totals[kSubjectMetric] = {3, 12};
  EXPECT_FALSE(mentions(subject_warning(report, kReplayed), "Worst")) << "the mean says it";
}

TEST(Subjects, ThatWereNotAskedAboutAreNotToldOf) {
  EXPECT_FALSE(count_subjects(EditReport{}));
  EXPECT_FALSE(count_subjects(kept_report(0, 0)));
  EXPECT_EQ(subject_warning(EditReport{}, kReplayed), "");
  EXPECT_TRUE(compared_answers(EditReport{}, 0).empty());
}

TEST(Subjects, AreComparedPromptByPrompt) {
  EditReport report;
  report.before.subject_answers = {{{AskedFor::kText, "X is", "a town"}, {AskedFor::kNextToken, "X has", " a"}}};
  report.after.subject_answers = {{{AskedFor::kText, "X is", "a band"}, {AskedFor::kNextToken, "X has", " a"}}};
  const std::vector<ComparedAnswer> compared = compared_answers(report, 0);
  ASSERT_EQ(compared.size(), 2u);
  EXPECT_FALSE(compared[0].is_kept());
  EXPECT_EQ(compared[0].prompt, "X is");
  EXPECT_EQ(compared[0].before, "a town");
  EXPECT_EQ(compared[0].after, "a band");
  EXPECT_TRUE(compared[1].is_kept());
  EXPECT_TRUE(compared_answers(report, 1).empty());
}

}  // namespace
}  // namespace lancet
