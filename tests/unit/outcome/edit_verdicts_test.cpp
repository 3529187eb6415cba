// Verdicts and warnings from reports made by hand.
#include "lancet/outcome/edit_verdicts.h"

#include <gtest/gtest.h>

#include "lancet/core/strings.h"
#include "lancet/outcome/edit_report.h"

namespace lancet {
namespace {

const ConfigTree kMemit = parse_config(
    "{method: memit, covariance_weight: 15000, values: {steps: 25, lr: 0.5, clamp: 4, stop_loss: 0.05}}", "test");

/// Values that were found, and followed.
RequestOutcome good() {
  return {.steps = 12,
          .initial_loss = 9,
          .final_loss = 0.04,
          .initial_norm = 2,
          .delta_norm = 3,
          .realised = 0.9,
          .realised_by_layer = {{0, 0.8}, {1, 0.9}}};
}

/// Requests "r0", "r1", ... of which those in `right` say their targets after the edit.
EditReport report_of(const std::vector<RequestOutcome>& outcomes, const std::vector<double>& right) {
  EditReport report;
  report.outcome.requests = outcomes;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    report.requests.emplace_back();
    report.requests.back().id = cat("r", i);
    if (i < right.size()) report.after.requests.push_back({{kSuccessMetric, {right[i], 1}}});
  }
  return report;
}

SuccessCount count_of(std::vector<Verdict> verdicts) {
  EditReport report;
  report.verdicts = std::move(verdicts);
  return count_successes(report);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The only warning.
std::string warning_of(const EditReport& report, const ConfigTree& editor = kMemit) {
  const std::vector<std::string> warnings = edit_warnings(report, editor);
  EXPECT_EQ(warnings.size(), 1u) << join(warnings, "\n");
  return warnings.empty() ? "" : warnings.front();
}

TEST(EditVerdicts, SayWhyAnEditDidNotTake) {
  RequestOutcome left_out = good(), missed = good(), behind = good();
  left_out.skipped = "its value's norm is 9";
  missed.final_loss = 3.21;
  behind.realised = 0.0825;
  EditReport report = report_of({good(), left_out, missed, behind, good(), {}}, {1, 0, 0, 0, 0, 0});
  report.before.target_probabilities = {0, 0, 0, 0, 0.01, 0};
  report.after.target_probabilities = {1, 0, 0, 0, 0.41, 0};
  const std::vector<Verdict> verdicts = judge_edits(report, kMemit);
  const std::vector<std::pair<FailureCause, std::string>> expected{
      {FailureCause::kNone, ""},
      {FailureCause::kLeftOut, "left out: its value's norm is 9"},
      {FailureCause::kValueNotFound, "value not found: final loss 3.21 after 12 steps"},
      {FailureCause::kDidNotFollow, "the weights followed 8.2 % of the way to its value"},
      {FailureCause::kOther,
       "final loss 0.04, the weights followed 90.0 % of the way, P(target) 41.0 % (1.0 % before): another token is "
       "likelier"},
      {FailureCause::kOther, "P(target) 0.0 % (0.0 % before): another token is likelier"}};
  ASSERT_EQ(verdicts.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(verdicts[i].cause, expected[i].first) << i;
    EXPECT_EQ(verdicts[i].why, expected[i].second) << i;
  }
  EXPECT_EQ(success_text(count_of(verdicts)), "1 of 6 edits took (the model says the target, efficacy_argmax)");
  EXPECT_FALSE(count_of(verdicts).none());
}

TEST(EditVerdicts, TakeARequestThatStoppedAsPredictedForFound) {
  RequestOutcome early = good();
  early.final_loss = 0.9;
  EditReport report = report_of({early}, {0});
  EXPECT_EQ(judge_edits(report, kMemit)[0].cause, FailureCause::kValueNotFound);
  const ConfigTree predicted = parse_config("{method: memit, values: {steps: 25, stop: predicted}}", "test");
  EXPECT_EQ(judge_edits(report, predicted)[0].cause, FailureCause::kOther);
  report.outcome.requests[0].steps = 25;  // its steps were done before it was predicted
  EXPECT_EQ(judge_edits(report, predicted)[0].cause, FailureCause::kValueNotFound);
}

TEST(EditVerdicts, CountWhatIsWrittenBesideWhatIsSaid) {
  EditReport report = report_of({good(), good(), good()}, {1, 1, 0});
  const std::vector<double> writes{1, 0, 0};
  for (size_t i = 0; i < writes.size(); ++i) report.after.requests[i][kWrittenMetric].add(writes[i]);
  report.verdicts = judge_edits(report, kMemit);
  EXPECT_EQ(success_text(count_successes(report)),
            "2 of 3 edits took (the model says the target, efficacy_argmax); for 1 its own text begins with the target "
            "(generation_starts)");
}

TEST(EditVerdicts, CountWhatHoldsInAChatAndWarnWhereLittleDoes) {
  EditReport report = report_of({good(), good(), good()}, {1, 1, 1});
  const std::vector<double> holds{1, 0, 0};
  for (size_t i = 0; i < holds.size(); ++i) report.after.requests[i][kChatMetric].add(holds[i]);
  report.verdicts = judge_edits(report, kMemit);
  EXPECT_EQ(success_text(count_successes(report)),
            "3 of 3 edits took (the model says the target, efficacy_argmax); in a chat 1 holds (chat_contains)");
  const auto chat_warning = [&](const ConfigTree& editor) {
    std::string found;
    for (const std::string& warning : edit_warnings(report, editor))
      if (has(warning, "chat_contains")) found += warning;
    return found;
  };
  EXPECT_TRUE(has(chat_warning(kMemit), "in a chat only 1 of the 3 edits that took holds")) << chat_warning(kMemit);
  EXPECT_TRUE(has(chat_warning(kMemit), "editor.contexts: {chat: model}"));
  const ConfigTree in_chat = parse_config("{method: memit, contexts: {chat: model}}", "test");
  EXPECT_FALSE(has(chat_warning(in_chat), "What helps"));
  report.after.requests[1][kChatMetric] = {};
  report.after.requests[1][kChatMetric].add(1);
  EXPECT_EQ(chat_warning(kMemit), "") << "most hold";
}

TEST(EditVerdicts, SayHowManyBatchesCameAfter) {
  EditReport report = report_of({good(), good(), good()}, {0, 0, 0});
  for (const int64_t request : {2, 0, 1}) {
    report.batches.emplace_back();
    report.batches.back().requests = {request};
  }
  const std::vector<Verdict> verdicts = judge_edits(report, kMemit);
  EXPECT_TRUE(has(verdicts[2].why, "another token is likelier (2 batches came after it)")) << verdicts[2].why;
  EXPECT_TRUE(has(verdicts[0].why, "(1 batch came after it)"));
  EXPECT_TRUE(verdicts[1].why.ends_with("another token is likelier"));
}

TEST(EditVerdicts, GoByWhatTheModelSaysAlone) {
  RequestOutcome bad = good();
  bad.final_loss = 8;
  bad.realised = 0.01;
  bad.skipped = "left out";
  const std::vector<Verdict> took = judge_edits(report_of({bad}, {1}), kMemit);
  EXPECT_EQ(took[0].cause, FailureCause::kNone);
  EXPECT_EQ(success_text(count_of(took)), "1 of 1 edit took (the model says the target, efficacy_argmax)");
  EXPECT_TRUE(count_of(judge_edits(report_of({good(), good()}, {0, 0.5}), kMemit)).none());
  const SuccessCount unknown = count_of(judge_edits(report_of({good(), good()}, {}), kMemit));
  EXPECT_EQ(unknown.measured, 0u);
  EXPECT_FALSE(unknown.none());
  EXPECT_EQ(success_text(unknown), "whether the edits took was not measured: add efficacy to evaluate");
}

TEST(EditVerdicts, NameWhomAKeyIsSharedWith) {
  RequestOutcome half = good();
  half.realised = 0.45;
  EditReport report = report_of({half, half, half}, {0, 0, 0});
  report.outcome.shared_keys = {{"have the same key", {{0, 2}}}};
  const std::vector<Verdict> verdicts = judge_edits(report, kMemit);
  EXPECT_EQ(verdicts[0].why, "the weights followed 45.0 % of the way to its value: it shares its key with r2");
  EXPECT_EQ(verdicts[1].why, "the weights followed 45.0 % of the way to its value");
}

TEST(EditWarnings, AreSilentWhereAllIsWell) {
  EditReport report = report_of({good(), good()}, {});
  report.rounding = {{"w", {.id = {}, .delta_norm = 1, .weight_norm = 100, .relative_loss = 0.3}}};
  EXPECT_TRUE(edit_warnings(report, kMemit).empty());
  EXPECT_TRUE(edit_warnings(report_of({{}, {}}, {}), kMemit).empty()) << "a method without values";
}

/// The down projections of layers 4, 5, ..., moved by these shares of their norms.
EditReport moved_by(const std::vector<double>& shares) {
  EditReport report = report_of({good()}, {});
  for (size_t i = 0; i < shares.size(); ++i) {
    const WeightId id{WeightKind::kDown, static_cast<int64_t>(i) + 4};
    report.rounding.emplace_back(cat("w", i), RoundingLoss{.id = id, .delta_norm = 2 * shares[i], .weight_norm = 2});
  }
  return report;
}

TEST(EditWarnings, SayThatLayersMovedFar) {
  EXPECT_EQ(warning_of(moved_by({0.11, 0.254, 0.099, 0.2})),
            "the edits moved layer 5 by 25.4 % of its norm (and 2 other layers by more than 10.0 %): what else the "
            "model knows may suffer, as subject_kept, specificity and side_effects in evaluate show. What helps: raise "
            "editor.covariance_weight; lower editor.values.clamp (now 4)");
  EXPECT_TRUE(has(warning_of(moved_by({1.04, 0.9}), parse_config("{covariance_weight: auto, values: {}}", "test")),
                  "What helps: set editor.covariance_weight: {realised_share: A} with a smaller A"));
  EXPECT_TRUE(
      has(warning_of(moved_by({0.3}), parse_config("{method: ft, lr: 0.1}", "test")), "What helps: lower editor.lr"));
  EXPECT_TRUE(edit_warnings(moved_by({0.1, 0.05}), kMemit).empty()) << "a tenth is not farther than a tenth";
}

TEST(EditWarnings, SayThatOneLayerMovedAlone) {
  const ConfigTree replay = parse_config("{method: memit, targets: auto, values: {clamp: 4}}", "test");
  EXPECT_EQ(
      warning_of(moved_by({0.08, 0.007, 0.001}), replay),
      "the edits moved layer 4 by 8.0 % of its norm, more than 10 times as far as any other (layer 5 by 0.7 %): "
      "what else the model knows may suffer, as subject_kept, specificity and side_effects in evaluate show. What "
      "helps: set editor.targets: last, which gives each layer its share; lower editor.values.clamp (now 4)");
  const ConfigTree last = parse_config("{method: memit, targets: last, values: {clamp: 4}}", "test");
  EXPECT_FALSE(has(warning_of(moved_by({0.194, 0.01}), last), "editor.targets")) << "it is so already";
  EXPECT_TRUE(edit_warnings(moved_by({0.08, 0.008}), replay).empty()) << "ten times as far is not farther";
  EXPECT_TRUE(edit_warnings(moved_by({0.009, 0}), replay).empty()) << "too little to be told of";
  EXPECT_TRUE(edit_warnings(moved_by({0.08}), replay).empty()) << "where one layer is edited there is no other";
}

TEST(EditWarnings, TakeTheWeightsOfALayerTogether) {
  EditReport report = report_of({good()}, {});
  report.rounding = {{"up", {.id = {WeightKind::kUp, 3}, .delta_norm = 0.3, .weight_norm = 3}},
                     {"down", {.id = {WeightKind::kDown, 3}, .delta_norm = 0.4, .weight_norm = 4}}};
  EXPECT_TRUE(edit_warnings(report, kMemit).empty()) << "0.5 of 5 together";
  report.rounding[1].second.delta_norm = 0.8;
  EXPECT_TRUE(has(warning_of(report), "the edits moved layer 3 by 17.1 % of its norm: ")) << warning_of(report);
}

TEST(EditWarnings, NameWhatHoldsTheWeightsBack) {
  RequestOutcome behind = good();
  behind.realised = 0.0825;
  const EditReport report = report_of({behind, behind, good()}, {});
  EXPECT_EQ(warning_of(report),
            "the values were found (final loss 0.04 in the median), but the weights did not follow: 8.2 % of the way "
            "in the median of 3 requests, held back by editor.covariance_weight: 15000. What helps: set "
            "editor.covariance_weight: auto, or lower it");
  const std::string alphaedit = warning_of(
      report, parse_config("{method: alphaedit, ridge: 10, null_space_below: 0.02, rect: {keep: 0.1}}", "test"));
  for (const char* part : {"editor.ridge: 10, editor.null_space_below: 0.02, editor.rect.keep: 0.1",
                           "set editor.ridge: auto, or lower it", "raise editor.rect.keep"})
    EXPECT_TRUE(has(alphaedit, part)) << alphaedit;
  EXPECT_TRUE(has(warning_of(report, parse_config("{covariance_weight: auto, values: {}}", "test")),
                  "What helps: set editor.covariance_weight: {realised_share: A} with a larger A"));
  EXPECT_TRUE(edit_warnings(report_of({behind, good(), good()}, {}), kMemit).empty()) << "the median followed";
}

TEST(EditWarnings, KeepSharedKeysApartFromWeightsThatDoNotFollow) {
  RequestOutcome half = good();
  half.realised = 0.4;
  EditReport report = report_of(std::vector<RequestOutcome>(300, half), {});
  std::vector<int64_t> all;
  for (int64_t i = 0; i < 300; ++i) all.push_back(i);
  report.outcome.shared_keys = {{"have the same key: so it is", {all}}};
  EXPECT_EQ(warning_of(report), "requests r0, r1, r2, r3 and 296 more have the same key: so it is");
  report.outcome.shared_keys = {{"have the same key: so it is", {{0, 1}, {2, 3, 4}}}};
  EXPECT_TRUE(
      has(edit_warnings(report, kMemit).front(), "5 requests in 2 groups, as r0 and r1, have the same key: so it is"));
}

TEST(EditWarnings, TellStepsThatAreTooSmallFromThoseThatDiverge) {
  RequestOutcome small = good();
  small.final_loss = 8.99;
  small.delta_norm = 1e-6;
  RequestOutcome clamped = small, risen = small;
  clamped.delta_norm = 8;
  risen.final_loss = 30;
  const std::string too_small = warning_of(report_of({small, good()}, {}));
  EXPECT_EQ(too_small,
            "the loss of 1 of 2 requests never fell: 9 at the first step, 8.99 at the last (medians). "
            "editor.values.lr: 0.5 is too small: raise it");
  for (const RequestOutcome& diverged : {clamped, risen})
    EXPECT_TRUE(has(warning_of(report_of({diverged}, {})), "editor.values.lr: 0.5 is too large, the steps diverge"));
  const ConfigTree one_step = parse_config("{values: {steps: 1, lr: 0.5}}", "test");
  EXPECT_TRUE(has(warning_of(report_of({small}, {}), one_step), "editor.values.steps: 1 makes no update: raise it"));
  const ConfigTree ft = parse_config("{method: ft, lr: 1.0e-9, steps: 25, stop_loss: 0.01}", "test");
  EXPECT_TRUE(has(warning_of(report_of({{.steps = 25, .initial_loss = 9, .final_loss = 9}}, {}), ft),
                  "editor.lr: 1.0e-9 is too small: raise it"));
}

TEST(EditWarnings, SayThatMoreStepsAreNeeded) {
  RequestOutcome missed = good();
  missed.final_loss = 3.2;
  missed.delta_norm = 8;  // at the clamp
  EXPECT_EQ(warning_of(report_of({missed, good(), good()}, {})),
            "the values of 1 of 3 requests were not found: final loss 3.2 in the median, stop_loss 0.05. What helps: "
            "editor.values.steps: auto (now 25), with which each goes on while its loss falls, up to 100, or a larger "
            "editor.values.clamp (now 4), which 1 reached");
  const ConfigTree automatic = parse_config("{values: {steps: auto, stop_loss: 0.05, clamp: 8}}", "test");
  missed.steps = 100;
  EXPECT_TRUE(has(warning_of(report_of({missed}, {}), automatic),
                  "What helps: editor.values.steps: 200 (now auto: 100), since their losses still fell"));
  const ConfigTree ft = parse_config("{method: ft, lr: 1.0e-3, steps: 25, stop_loss: 0.01}", "test");
  missed.initial_loss = 9;
  EXPECT_TRUE(has(warning_of(report_of({missed}, {}), ft), "What helps: editor.steps: 50 (now 25)")) << "no auto there";
}

TEST(EditWarnings, DoNotAdviseStepsThatWouldNotHelp) {
  RequestOutcome early = good();  // under auto, before the limit: its loss no longer fell
  early.final_loss = 3.2;
  early.steps = 61;
  const ConfigTree automatic = parse_config("{values: {steps: auto, stop_loss: 0.05, clamp: 4}}", "test");
  EXPECT_EQ(
      warning_of(report_of({good(), early, good(), early}, {}), automatic),
      "the model does not take in 2 of 4 requests this way (r1 and r3): their losses stayed at 3.2 in the median, "
      "and more steps would not bring them down. Try other editor.layers, another method; a small model may be "
      "too small for the fact");
  RequestOutcome flat = early;  // with a number of steps: by its losses
  flat.losses = std::vector<float>(60, 3.2F);
  const ConfigTree many = parse_config("{values: {steps: 60, stop_loss: 0.05, clamp: 4}}", "test");
  EXPECT_TRUE(has(warning_of(report_of({flat}, {}), many), "more steps would not bring them down"));
  flat.losses.back() = 3.1F;
  EXPECT_TRUE(has(warning_of(report_of({flat}, {}), many), "editor.values.steps: auto (now 60)"));
}

TEST(EditVerdicts, TellFactsThatAModelDoesNotTakeInFromThoseThatNeedMoreSteps) {
  RequestOutcome stalled = good(), falling = good();
  stalled.final_loss = falling.final_loss = 3.2;
  stalled.steps = falling.steps = 60;
  stalled.losses = falling.losses = std::vector<float>(60, 3.2F);
  std::fill(falling.losses.begin(), falling.losses.end() - 1, 3.3F);
  const ConfigTree editor = parse_config("{values: {steps: 60, stop_loss: 0.05, clamp: 4}}", "test");
  EditReport report = report_of({stalled, falling, good()}, {0, 0, 1});
  report.verdicts = judge_edits(report, editor);
  EXPECT_EQ(report.verdicts[0].why, "value not found: final loss 3.2 after 60 steps, and it no longer fell");
  EXPECT_EQ(report.verdicts[1].why, "value not found: final loss 3.2 after 60 steps");
  const std::vector<std::string> warnings = edit_warnings(report, editor);
  ASSERT_EQ(warnings.size(), 2u) << join(warnings, "\n");
  EXPECT_TRUE(has(warnings[0], "the values of 1 of 3 requests were not found")) << warnings[0];
  EXPECT_TRUE(has(warnings[1], "the model does not take in 1 of 3 requests this way (r0): ")) << warnings[1];
}

TEST(EditWarnings, AreSilentOfValuesThatWereEnough) {
  RequestOutcome missed = good();
  missed.final_loss = 0.8;
  EditReport report = report_of({missed, good()}, {1, 1});
  EXPECT_EQ(edit_warnings(report, kMemit).size(), 1u);
  report.verdicts = judge_edits(report, kMemit);
  EXPECT_TRUE(edit_warnings(report, kMemit).empty());
}

TEST(EditWarnings, SayHowMuchRoundingLost) {
  EditReport report = report_of({good()}, {});
  report.rounding = {{"a", {.id = {}, .delta_norm = 1, .weight_norm = 100, .relative_loss = 0.6}},
                     {"b", {.id = {}, .delta_norm = 1, .weight_norm = 1000, .relative_loss = 0.83}},
                     {"c", {.id = {}, .delta_norm = 1, .weight_norm = 10, .relative_loss = 0.1}}};
  EXPECT_EQ(warning_of(report),
            "rounding to the type that the model is stored in lost 83.0 % of the change of b (and more than half of 1 "
            "other change): it is 0.1 % of the weight's norm, too small for the type. A model stored in F32 keeps it");
}

}  // namespace
}  // namespace lancet
