// What a plan says that work on the host will hold, beside what tensors took there.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/strings.h"
#include "lancet/eval/evaluate.h"
#include "lancet/kernels/linear.h"
#include "lancet/plan/job_plan.h"
#include "lancet/training/values.h"
#include "support/edit_setup.h"
#include "support/host_tensors.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TinyModel;
using testing::TinyShape;

/// Matrices that are large beside the activations of a batch.
constexpr TinyShape kLargeMatrices{.n_layers = 3, .d_model = 512, .d_ffn = 4096, .n_heads = 8, .n_kv_heads = 4};

/// Runs on as many threads as the plan says, each with a batch of its own.
class PlannedOnHost : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (linear_scratch_bytes({1, 8, 8}, GetParam(), Placement::host()) == 0)
      GTEST_SKIP() << "this processor has products of " << GetParam();
    at::set_num_threads(kThreads);
  }
  void TearDown() override { at::set_num_threads(before_); }

  JobPlan plan() const {
    ResolvedJob job = testing::job_with_editor(
        "{method: memit, layers: [1], values: {steps: 2, lr: 0.1, batch: 2}, contexts: ['{}']}");
    job.run.dtype = to_dtype(GetParam());
    job.run.threads = kThreads;
    std::vector<std::string> assumptions;
    const Workload work =
        edit_work(job, tiny_.config, {tiny_.tokenizer.get(), requests_, questions_.size()}, assumptions);
    return plan_job(tiny_.config, work, {{{Placement::host()}}}, Balance::kMemory);
  }

  static constexpr int kThreads = 2;
  int before_ = at::get_num_threads();
  TinyModel tiny_{kLargeMatrices};
  std::vector<EditRequest> requests_ = testing::some_requests(6);
  EvaluationPlan questions_{*tiny_.tokenizer, requests_, {.protocols = {"efficacy"}}, tiny_.config.max_positions};
};

TEST_P(PlannedOnHost, CountsBlocksThatAreWidened) {
  const JobPlan job = plan();
  const StageEstimate& stage = job.stages.front();
  const CausalLM model = CausalLM::load(tiny_.checkpoint, tiny_.config, job.placement);
  const int64_t evaluated = testing::host_tensors_peak([&] { questions_.run(model, "test", alone()); });
  EXPECT_LE(static_cast<double>(evaluated), 1.1 * static_cast<double>(stage.evaluate));
  EXPECT_GE(3 * evaluated, stage.evaluate);
  const std::vector<PreparedRequest> prepared =
      prepare_requests(*tiny_.tokenizer, requests_, std::vector<std::string>{"{}"});
  const int64_t values = testing::host_tensors_peak(
      [&] { optimize_values(model, prepared, 1, {.steps = 2, .lr = 0.1, .batch = 2}, {alone()}); });
  const int64_t planned = stage.value_activations + stage.value_prefix;
  EXPECT_LE(static_cast<double>(values), 1.1 * static_cast<double>(planned));
  EXPECT_GE(3 * values, planned);
  const int64_t block = 4 * int64_t{4096} * 512;
  EXPECT_GT(values, block) << "no matrix was widened";
  EXPECT_GT(planned, kThreads * block) << "blocks of batches under way";
}

INSTANTIATE_TEST_SUITE_P(Types, PlannedOnHost, ::testing::Values(at::kBFloat16, at::kHalf));

}  // namespace
}  // namespace lancet
