// Why edits did not take where no value's loss tells it: reports as SmolLM2-135M gave them, made by hand.
#include <gtest/gtest.h>

#include "lancet/core/strings.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/outcome/edit_verdicts.h"

namespace lancet {
namespace {

/// Requests "r0", "r1", ... towards these targets, none of which is said after the edit.
EditReport failed(const std::vector<std::string>& targets) {
  EditReport report;
  for (size_t i = 0; i < targets.size(); ++i) {
    report.requests.emplace_back();
    report.requests.back().id = cat("r", i);
    report.requests.back().target = targets[i];
    report.after.requests.push_back({{kSuccessMetric, {0, 1}}});
  }
  report.outcome.requests.resize(targets.size());
  return report;
}

/// A change of a weight by so much of its norm.
std::pair<std::string, RoundingLoss> moved(double growth) {
  return {"model.layers.20.mlp.down_proj.weight", RoundingLoss{.id = {}, .delta_norm = growth, .weight_norm = 1}};
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const ConfigTree kByValues = parse_config("{method: memit, values: {steps: 25, stop_loss: 0.05}}", "test");

TEST(FailureReasons, TellRequestsThatCollideFromValuesThatWereNotFound) {
  EditReport report = failed({"Chrysler", "Dodge", "Rome"});
  report.before.continuations = {" Toyota.", " Toyota, and", " Chrysler"};
  report.after.continuations = {" Dodge, and", " Dodger Stadium", " Chrysler"};
  for (RequestOutcome& outcome : report.outcome.requests) outcome = {.steps = 25, .initial_loss = 9, .final_loss = 3};
  const std::vector<Verdict> verdicts = judge_edits(report, kByValues);
  EXPECT_EQ(verdicts[0].cause, FailureCause::kCollides);
  EXPECT_EQ(verdicts[0].why, "collides with r1: the model now says its target, 'Dodge', here too");
  EXPECT_EQ(verdicts[1].cause, FailureCause::kValueNotFound) << "another word that begins alike";
  EXPECT_EQ(verdicts[2].cause, FailureCause::kValueNotFound) << "it said so before";
  EXPECT_EQ(cause_name(FailureCause::kCollides), "collides");
  report.requests[1].target = "Chrysler";
  report.after.continuations[0] = " Chrysler of a kind";
  EXPECT_EQ(judge_edits(report, kByValues)[0].cause, FailureCause::kValueNotFound) << "both have that target";
}

TEST(FailureReasons, NameTheLimitThatKeptATrainingTooSmall) {
  const ConfigTree editor =
      parse_config("{method: ft-l, steps: 25, lr: 5.0e-4, norm_constraint: 5.0e-5, stop_loss: 0.01}", "test");
  EditReport report = failed({"Rome", "Paris"});
  for (RequestOutcome& outcome : report.outcome.requests) outcome = {.steps = 25, .initial_loss = 9, .final_loss = 8.9};
  report.rounding = {moved(0.0005)};
  const std::vector<std::string> warnings = edit_warnings(report, editor);
  ASSERT_EQ(warnings.size(), 1u) << join(warnings, "\n");
  EXPECT_TRUE(says(warnings[0], "editor.norm_constraint: 5e-05 lets no entry of a weight change by more"))
      << warnings[0];
  EXPECT_TRUE(says(warnings[0], "raise editor.norm_constraint, as to 0.01")) << warnings[0];
  EXPECT_FALSE(says(warnings[0], "is too small: raise it")) << "the learning rate is not the reason";
  EXPECT_TRUE(says(judge_edits(report, editor)[0].why, "editor.norm_constraint: 5e-05"));
  report.rounding = {moved(0.2)};  // then the limit is no reason
  EXPECT_FALSE(says(join(edit_warnings(report, editor), "\n"), "norm_constraint"));
}

TEST(FailureReasons, NameTheLengthOfAnOnlyStep) {
  const ConfigTree editor = parse_config("{method: ultraedit, lr: 1.0e-6, batch: 10}", "test");
  EditReport report = failed({"Rome", "Paris"});
  for (RequestOutcome& outcome : report.outcome.requests) outcome = {.steps = 1, .initial_loss = 9};
  report.rounding = {moved(0.00001)};
  const std::vector<std::string> warnings = edit_warnings(report, editor);
  ASSERT_EQ(warnings.size(), 1u) << join(warnings, "\n");
  EXPECT_TRUE(says(warnings[0], "the one step of editor.lr: 1e-06 moved no weight by more than")) << warnings[0];
  EXPECT_TRUE(says(warnings[0], "raise editor.lr, as to 0.01")) << warnings[0];
  report.after.requests[0].at(kSuccessMetric).sum = 1;  // as many took as did not
  EXPECT_TRUE(edit_warnings(report, editor).empty());
}

TEST(FailureReasons, SayWhatAValueOfTwoPartsLeavesOut) {
  const ConfigTree editor = parse_config("{method: pmet, values: {steps: 25, stop_loss: 0.05, nll_factor: 1}}", "test");
  EditReport report = failed({"Rome"});
  report.outcome.requests[0] = {.steps = 12, .initial_loss = 9, .final_loss = 0.04, .realised = 0.99};
  EXPECT_TRUE(says(judge_edits(report, editor)[0].why, "the method writes the MLP's part alone"));
  EXPECT_FALSE(says(judge_edits(report, kByValues)[0].why, "MLP"));
}

}  // namespace
}  // namespace lancet
