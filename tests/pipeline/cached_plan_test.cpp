// What a job counts of statistics that its cache has.
#include <gtest/gtest.h>

#include "lancet/core/error.h"
#include "lancet/eval/evaluate.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/plan/job_plan.h"
#include "session_jobs.h"

namespace lancet {
namespace {

class CachedPlans : public testing::Sessions {
 protected:
  static constexpr const char* kPlain = "{method: memit, layers: [0, 1], values: {steps: 2, lr: 0.1, batch: 2}}";

  int64_t bytes_of(const Workload& work) const {
    return plan_job(tiny_.config, work, {{{Placement::host()}}}, Balance::kMemory).stages.front().total();
  }

  /// Less than the job takes with its pass over text, and enough without.
  std::string too_little(const std::string& overrides) const {
    const ResolvedJob planned = job("unused", kPlain, overrides);
    const std::vector<EditRequest> requests = testing::some_requests(8);
    const EvaluationPlan questions(*tiny_.tokenizer, requests, planned.evaluation, tiny_.config.max_positions);
    std::vector<std::string> assumptions;
    const Workload work =
        edit_work(planned, tiny_.config, {tiny_.tokenizer.get(), requests, questions.size()}, assumptions);
    const int64_t with = bytes_of(work), without = bytes_of(without_text(work));
    EXPECT_GT(with, without + (int64_t{1} << 20));
    // what is planned here has the longest documents, the corpus shorter ones
    return cat(overrides, " run.devices=cpu=", without + (with - without) / 8, "B");
  }
};

TEST_F(CachedPlans, CountNoPassOverTextWhoseResultsAreThere) {
  for (const std::string text : {"statistics.tokens=2900", "statistics.corpus=self statistics.document_tokens=64"}) {
    const std::string name = cat("cached-", text.size()), little = too_little(text);
    EXPECT_THROW(edit(name, little, kPlain), PlacementError) << text;
    edit(name, text, kPlain);
    edit(name + "-again", little, kPlain);
    EXPECT_EQ(bytes(name + "-again/model.safetensors"), bytes(name + "/model.safetensors")) << text;
    EXPECT_THROW(edit(name + "-ridge", little + " statistics.ridge=1e-4", kPlain), PlacementError) << text;
    EXPECT_THROW(edit(name + "-text", little + " statistics.tokens=2899", kPlain), PlacementError) << text;
  }
}

TEST_F(CachedPlans, AreTheSameOnEveryRankThoughRootHasTheCache) {
  const std::string little = too_little("");
  edit("alone", "", kPlain);
  testing::run_ranks(2, [&](Communicator& ranks) {
    ResolvedJob shared = job("ranks", kPlain, little);
    if (!ranks.is_root()) shared.statistics->cache = folder_ / "elsewhere";
    run_edit_job(shared, ranks);
  });
  EXPECT_TRUE(std::filesystem::exists(folder_ / "ranks" / "model.safetensors"));
}

TEST_F(CachedPlans, OfSessionsCountNothingForWhatIsThere) {
  constexpr int64_t kRequests = 8;
  constexpr const char* kMuchText = "statistics.tokens=100000";  // of which a pass takes more than the questions
  CompletedJob session = completed(kPlain);
  apply_override(session.tree, kMuchText);
  const ResolvedJob planned = parse_job(session.tree, session.source.base, session.source.name, JobPurpose::kSession);
  std::vector<std::string> assumptions;
  const Workload work = edit_work(planned, tiny_.config, {.n_requests = kRequests}, assumptions);
  const int64_t with = bytes_of(work), without = bytes_of(without_text(work));
  ASSERT_GT(with, without + (int64_t{1} << 20));
  const auto open = [&](const std::string& more) {
    CompletedJob job = session;
    std::istringstream each(cat("run.devices=cpu=", (with + without) / 2, "B ", more));
    for (std::string assignment; each >> assignment;) apply_override(job.tree, assignment);
    testing::Listener listener;
    Session(job, listener, kRequests);
  };
  EXPECT_THROW(open(""), PlacementError);
  edit("cached", kMuchText, kPlain);
  EXPECT_NO_THROW(open(""));
  EXPECT_THROW(open("statistics.ridge=1e-4"), PlacementError);
}

}  // namespace
}  // namespace lancet
