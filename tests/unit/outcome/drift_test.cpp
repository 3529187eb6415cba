#include "lancet/outcome/drift.h"

#include <gtest/gtest.h>

namespace lancet {
namespace {

/// Batches of ten requests, with what was measured after each.
std::vector<BatchReport> batches_of(const std::vector<std::optional<double>>& text_kl) {
  std::vector<BatchReport> batches;
  for (const std::optional<double>& kl : text_kl) {
    BatchReport& batch = batches.emplace_back();
    batch.requests.resize(10);
    batch.text_kl = kl;
  }
  return batches;
}

TEST(Drift, SaysHowManyEditsTheTextBearsAtTheLastPace) {
  const DriftAlarm alarm{.text_kl = 0.05};
  const Drift first = drift_of(alarm, batches_of({0.01})).value();
  EXPECT_EQ(first.edits_left, 40);  // from 0 to 0.01 by ten
  const Drift faster = drift_of(alarm, batches_of({0.01, {}, 0.045})).value();
  EXPECT_EQ(faster.batches, 3u);
  EXPECT_EQ(faster.edits, 30);
  EXPECT_EQ(faster.edits_left, 2);  // 0.035 by twenty
  EXPECT_FALSE(faster.is_too_far);
  EXPECT_EQ(drift_text(alarm, faster), "text_kl 0.045 of 0.05: about 2 more edits");
  EXPECT_EQ(drift_of(alarm, batches_of({0.02, 0.01}))->edits_left, std::nullopt) << "text comes back";
  const Drift far = drift_of(alarm, batches_of({0.01, 0.06, {}})).value();
  EXPECT_TRUE(far.is_too_far);
  EXPECT_EQ(far.batches, 2u);
  EXPECT_EQ(far.edits_left, std::nullopt);
  EXPECT_EQ(drift_of(alarm, batches_of({{}, {}})), std::nullopt);
}

}  // namespace
}  // namespace lancet
