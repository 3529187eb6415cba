// Streams that end, or warn, when they have moved held-out text too far.
#include "lancet/core/error.h"
#include "stream_jobs.h"

namespace lancet {
namespace {

using testing::kMemit;
using testing::StreamJobs;

constexpr const char* kText = R"(evaluate={"metrics":["efficacy"],"side_effects":{"text":"corpus.txt","tokens":400}} )";

class DriftAlarmJobs : public StreamJobs {
 protected:
  static std::string alarm(double text_kl, const char* action) {
    return cat(kText, "schedule.drift_alarm.text_kl=", text_kl, " schedule.drift_alarm.action=", action, " ");
  }
};

TEST_F(DriftAlarmJobs, StopWithTheOutputOfTheBatchesSoFar) {
  const EditReport whole = edit("whole", alarm(1e-9, "warn"));
  ASSERT_EQ(whole.batches.size(), 4u);
  EXPECT_TRUE(whole.stopped.empty());
  const auto warned = [](const EditReport& report, const char* words) {
    return std::ranges::any_of(report.outcome.warnings,
                               [&](const std::string& warning) { return warning.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(warned(whole, "after batch 4: text_kl "));
  const EditReport part = edit("part", cat(kText, "requests.limit=4"));
  const double at_two = *part.after.side_effects.totals.at("text_kl").mean();
  EXPECT_NEAR(whole.batches[1].text_kl.value(), at_two, 1e-12);
  ASSERT_LT(*whole.batches[0].text_kl, at_two);

  const std::string stops = alarm((*whole.batches[0].text_kl + at_two) / 2, "stop");
  const EditReport stopped = edit("stopped", stops);
  EXPECT_EQ(stopped.batches.size(), 2u);
  EXPECT_NE(stopped.stopped.find("after batch 2 of 4"), std::string::npos) << stopped.stopped;
  EXPECT_NE(stopped.stopped.find("4 requests were not edited"), std::string::npos) << stopped.stopped;
  EXPECT_TRUE(warned(stopped, "lancet undo"));
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(stopped.outcome.requests[i].skipped.empty(), i < 4);
  EXPECT_EQ(bytes("stopped/model.safetensors"), bytes("part/model.safetensors"));
  EXPECT_EQ(bytes("stopped/requests.jsonl"), bytes("part/requests.jsonl"));
  EXPECT_EQ(edit_files("stopped"), edit_files("part"));
  EXPECT_EQ(history("stopped").journal().requests().size(), 4u);
  const testing::Json drift = report("stopped")["schedule"]["drift"];
  EXPECT_EQ(drift["set_off"], true);
  EXPECT_EQ(drift["after_batches"], 2);
  EXPECT_EQ(drift["stopped"], stopped.stopped);

  // killed after its last batch, it stops there again; and others go on from it
  edit_until("out", {"evaluate after", 1}, stops);
  const EditReport resumed = edit("out", stops);
  EXPECT_EQ(resumed.resumed_batches, 2);
  EXPECT_EQ(resumed.stopped, stopped.stopped);
  EXPECT_EQ(bytes("out/model.safetensors"), bytes("part/model.safetensors"));
  edit("rest", "requests.skip=4 continue_from=stopped");
  EXPECT_EQ(bytes("rest/model.safetensors"), bytes("whole/model.safetensors"));
}

TEST_F(DriftAlarmJobs, NeedTextAndMeasures) {
  const auto refused = [&](const std::string& overrides) {
    try {
      job("out", kMemit, overrides);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("schedule.drift_alarm.text_kl=0.1").find("expected evaluate.side_effects.text"), std::string::npos);
  EXPECT_NE(refused(alarm(0.1, "stop") + "schedule.measure_every=0").find("schedule.measure_every: expected 1 or more"),
            std::string::npos);
  EXPECT_EQ(refused(alarm(0.1, "stop")), "");
}

}  // namespace
}  // namespace lancet
