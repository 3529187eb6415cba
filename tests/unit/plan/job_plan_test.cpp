#include "lancet/plan/job_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "support/byte_units.h"

namespace lancet {
namespace {

using testing::kGiB;

ModelConfig llama_70b() {
  const std::filesystem::path file =
      std::filesystem::path(LANCET_SOURCE_DIR) / "tests/fixtures/llama-3-70b/config.json";
  return parse_model_config(read_text_file(file, "config.json"), "", {}, file.string());
}

Workload typical(const ModelConfig& config, SolveOn solve_on = SolveOn::kDevice) {
  std::vector<std::string> assumptions;
  RunOptions run;
  run.solve_on = solve_on;
  return typical_work(run, config, assumptions);
}

JobPlan plan_70b(const std::string& devices, Balance balance = Balance::kMemory) {
  const ModelConfig config = llama_70b();
  return plan_job(config, typical(config), assume_devices(devices), balance);
}

TEST(JobPlan, CountsLlama70BsWeights) {
  const ModelConfig config = llama_70b();
  constexpr int64_t kLayer = 2 * 8192 * 8192 + 2 * 1024 * 8192 + 3 * 8192 * 28672 + 2 * 8192, kHead = 128256 * 8192;
  EXPECT_EQ(weight_bytes(config, {0, 80}, at::kBFloat16), 2 * (80 * kLayer + 2 * kHead + 8192));
  EXPECT_EQ(weight_bytes(config, {3, 5}, at::kBFloat16), 2 * 2 * kLayer);
  EXPECT_EQ(weight_bytes(config, {0, 1}, at::kFloat), 4 * (kLayer + kHead));
  ModelConfig tied = config;
  tied.tied_embeddings = true;
  EXPECT_EQ(weight_bytes(tied, {0, 80}, at::kBFloat16), 2 * (80 * kLayer + kHead + 8192));
  EXPECT_EQ(weight_bytes(tied, {79, 80}, at::kBFloat16), 2 * (kLayer + kHead + 8192));  // a copy beside the head
}

TEST(JobPlan, SplitsLlama70BOverEightDevices) {
  const JobPlan plan = plan_70b("8x80GiB");
  ASSERT_EQ(plan.stages.size(), 8u);
  EXPECT_TRUE(plan.idle.empty());
  int64_t weights = 0, next = 0;
  for (const StageEstimate& stage : plan.stages) {
    EXPECT_EQ(stage.stage.begin, next);
    next = stage.stage.end;
    weights += stage.weights;
    EXPECT_LE(stage.total(), stage.budget);
    EXPECT_EQ(stage.budget, 80 * kGiB);
  }
  EXPECT_EQ(next, 80);
  EXPECT_EQ(weights, weight_bytes(llama_70b(), {0, 80}, at::kBFloat16));
  // The edited layers' second moments are most of what their devices hold: those get fewer layers.
  EXPECT_LT(plan.placement.stages()[static_cast<size_t>(plan.placement.stage_of(21))].layers(), 10);
  EXPECT_GE(plan.stages[static_cast<size_t>(plan.placement.stage_of(21))].statistics, 2 * 8 * int64_t{28672} * 28672);
}

TEST(JobPlan, RefusesLlama70BOnFourSmallDevicesWithRemediesThatWork) {
  try {
    plan_70b("4x24GiB");
    FAIL();
  } catch (const PlacementError& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.exit_code(), ExitCode::kPlacement);
    EXPECT_NE(text.find("cuda:3, layers "), std::string::npos) << text;
    EXPECT_NE(text.find(" of 24.0 GiB: too much (weights "), std::string::npos) << text;
    EXPECT_NE(text.find("more devices: 5 more of 24.0 GiB"), std::string::npos) << text;
    EXPECT_NE(text.find("layers on the CPU: cpu at the end of run.devices"), std::string::npos) << text;
  }
  EXPECT_NO_THROW(plan_70b("9x24GiB"));
  EXPECT_THROW(plan_70b("8x24GiB"), PlacementError);
  EXPECT_NO_THROW(plan_70b("4x24GiB,cpu=256GiB"));
}

TEST(JobPlan, LeavesToTheCpuWhatTheGpusCannotHold) {
  const JobPlan plan = plan_70b("80GiB,cpu=256GiB");
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_TRUE(plan.stages[1].stage.device == Placement::host());
  EXPECT_TRUE(plan.fits());
  const ModelConfig config = llama_70b();
  const auto on_gpu = [&](int64_t layers) {  // with batches of one request
    return estimate_stage(config, typical(config), {plan.stages[0].stage.device, 0, layers}, {1, 2}).total();
  };
  EXPECT_LE(on_gpu(plan.stages[0].stage.end), 80 * kGiB);
  EXPECT_GT(on_gpu(plan.stages[0].stage.end + 1), 80 * kGiB);
  const JobPlan spare = plan_70b("8x80GiB,cpu=256GiB");
  EXPECT_EQ(spare.stages.size(), 8u);
  EXPECT_EQ(spare.idle, std::vector<std::string>{"cpu"});
}

TEST(JobPlan, UnequalDevicesGetLayersByTheirMemory) {
  const JobPlan plan = plan_70b("24GiB,2x80GiB");
  ASSERT_EQ(plan.stages.size(), 3u);
  EXPECT_LT(plan.stages[0].weights, 24 * kGiB);
  EXPECT_GT(plan.stages[2].stage.layers(), plan.stages[0].stage.layers() * 3);
}

/// What is held at a time follows from the vocabulary: small ones are read 1024 rows at a time.
TEST(JobPlan, LogitsOfLargeVocabulariesAreReadInSmallerParts) {
  ModelConfig config = llama_70b();
  const int64_t rows = rows_per_head_call(config, at::kBFloat16);
  EXPECT_LE(head_bytes(config, at::kBFloat16, rows), 256 << 20);
  EXPECT_GT(head_bytes(config, at::kBFloat16, rows + 1), 256 << 20);
  EXPECT_GT(rows, 190);
  config.vocab_size = 4096;
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat, at::kDouble})
    EXPECT_EQ(rows_per_head_call(config, dtype), 1024);
  config.vocab_size = int64_t{1} << 40;
  EXPECT_EQ(rows_per_head_call(config, at::kFloat), 1);
}

JobPlan solving_on(SolveOn where, const DeviceChoice& devices) {
  const ModelConfig config = llama_70b();
  return choose_plan(config, typical(config, where), devices, Balance::kMemory);
}

TEST(JobPlan, WithSolvesOnTheHostADeviceHoldsPassesAlone) {
  const ModelConfig config = llama_70b();
  const DeviceChoice devices = assume_devices("400GiB,cpu=400GiB");
  const JobPlan there = solving_on(SolveOn::kDevice, devices), on_host = solving_on(SolveOn::kHost, devices);
  EXPECT_FALSE(there.host.has_value());
  EXPECT_EQ(there.placement.solve_on(), SolveOn::kDevice);
  ASSERT_TRUE(on_host.host.has_value());
  EXPECT_EQ(on_host.placement.solve_on(), SolveOn::kHost);
  EXPECT_TRUE(on_host.placement.solve_device(21) == Placement::host());
  EXPECT_EQ(on_host.host->budget, 400 * kGiB);
  const int64_t square = 8 * int64_t{28672} * 28672, matrix = int64_t{8192} * 28672;
  const StageEstimate& gpu = on_host.stages[0];
  EXPECT_EQ(gpu.weights, there.stages[0].weights);
  EXPECT_EQ(gpu.edited, 0);
  EXPECT_EQ(gpu.statistics + 5 * square, there.stages[0].statistics);
  EXPECT_GT(there.stages[0].solve, square);
  EXPECT_LT(gpu.solve, 3 * kGiB);
  EXPECT_EQ(on_host.host->edited, there.stages[0].edited);
  EXPECT_GE(on_host.host->edited, 5 * 6 * matrix);
  EXPECT_GE(on_host.host->statistics, 5 * square);
  EXPECT_GE(on_host.host->solve, square);
  EXPECT_EQ(on_host.host->weights, 0);
  EXPECT_EQ(on_host.host->evaluate, 0);
}

TEST(JobPlan, AutoSolvesOnTheHostOnlyWhereTheDevicesAreTooSmall) {
  const auto chosen = [](const std::string& devices) { return solving_on(SolveOn::kAuto, assume_devices(devices)); };
  EXPECT_TRUE(solving_on(SolveOn::kDevice, assume_devices("180GiB")).fits());
  EXPECT_EQ(chosen("180GiB").placement.solve_on(), SolveOn::kDevice);
  EXPECT_FALSE(solving_on(SolveOn::kDevice, assume_devices("150GiB")).fits());
  const JobPlan smaller = chosen("150GiB");
  EXPECT_TRUE(smaller.fits());
  EXPECT_EQ(smaller.placement.solve_on(), SolveOn::kHost);
  ASSERT_TRUE(smaller.host.has_value());
  EXPECT_EQ(smaller.host->budget, DeviceBudget::kUnknown);
  DeviceChoice all = assume_devices("2x150GiB");  // the first device, if that is enough
  all.first_if_enough = true;
  const JobPlan both = solving_on(SolveOn::kAuto, all);
  EXPECT_EQ(both.placement.solve_on(), SolveOn::kDevice);
  EXPECT_EQ(both.stages.size(), 2u);

  // before any layer goes to the CPU, and where some have to
  EXPECT_EQ(chosen("8x80GiB,cpu=400GiB").placement.solve_on(), SolveOn::kDevice);
  const JobPlan whole = chosen("150GiB,cpu=400GiB");
  EXPECT_EQ(whole.placement.solve_on(), SolveOn::kHost);
  EXPECT_EQ(whole.idle, std::vector<std::string>{"cpu"});
  const JobPlan part = chosen("80GiB,cpu=400GiB"), part_there = plan_70b("80GiB,cpu=400GiB");
  EXPECT_TRUE(part.fits());
  EXPECT_FALSE(part.host.has_value()) << "the CPU's stage has it all";
  ASSERT_EQ(part.stages.size(), 2u);
  EXPECT_LT(part.stages[1].stage.layers(), part_there.stages[1].stage.layers());
  EXPECT_GE(part.stages[1].statistics, 5 * 8 * int64_t{28672} * 28672);

  EXPECT_EQ(chosen("cpu=900GiB").placement.solve_on(), SolveOn::kDevice);  // no difference
  const ModelConfig config = llama_70b();
  Workload asked = evaluation_work({}, config, {});
  EXPECT_EQ(asked.solve_on, SolveOn::kAuto);
  EXPECT_EQ(choose_plan(config, asked, assume_devices("8GiB"), Balance::kMemory).placement.solve_on(), SolveOn::kDevice)
      << "nothing is solved";
}

TEST(JobPlan, SolvesOnTheHostCountAgainstItsMemory) {
  const ModelConfig config = llama_70b();
  DeviceChoice devices = assume_devices("150GiB");
  EXPECT_TRUE(solving_on(SolveOn::kAuto, devices).fits());
  devices.host_bytes = 8 * kGiB;
  for (const SolveOn where : {SolveOn::kAuto, SolveOn::kHost}) {
    const JobPlan plan = solving_on(where, devices);
    EXPECT_FALSE(plan.fits());
    ASSERT_TRUE(plan.host.has_value());
    EXPECT_EQ(plan.host->budget, 8 * kGiB);
    const std::string refusal = refusal_text(config, typical(config, where), devices, Balance::kMemory);
    EXPECT_NE(refusal.find("cpu, solves: "), std::string::npos) << refusal;
    EXPECT_NE(refusal.find(" of 8.0 GiB: too much"), std::string::npos) << refusal;
  }
  devices.host_bytes = DeviceBudget::kUnknown;
  const std::string remedy = refusal_text(config, typical(config), devices, Balance::kMemory);
  EXPECT_NE(remedy.find("run.solve_on: host"), std::string::npos) << remedy;
}

/// A model whose work is all that counts.
Workload light_work(int64_t edited) {
  Workload work;
  work.dtype = at::kBFloat16;
  work.requests = 100;
  work.edited_layers = {edited};
  work.optimizes_values = true;
  work.values = {.contexts = 6, .row_tokens = 24, .prefix_tokens = 16, .suffix_tokens = 8, .target_tokens = 4};
  work.value_steps = 25;
  return work;
}

TEST(JobPlan, BalancesWorkByWhatStepsRunAndBySpeed) {
  const ModelConfig config = llama_70b();
  DeviceChoice devices = assume_devices("2x400GiB");
  const auto first_stage = [&](Balance balance) {
    return plan_job(config, light_work(39), devices, balance).placement.stages()[0].layers();
  };
  EXPECT_NEAR(static_cast<double>(first_stage(Balance::kMemory)), 40, 3);
  const int64_t by_work = first_stage(Balance::kWork);  // steps run layers 40-79 alone
  EXPECT_GT(by_work, 52);
  EXPECT_LT(by_work, 64);
  devices.devices[0].speed = 0.25;
  EXPECT_LT(first_stage(Balance::kWork), by_work - 5);
}

TEST(JobPlan, AutoTakesAllDevicesOnlyWhereTheFirstIsTooSmall) {
  const ModelConfig config = llama_70b();
  DeviceChoice devices = assume_devices("4x200GiB");
  devices.first_if_enough = true;
  EXPECT_EQ(plan_job(config, typical(config), devices, Balance::kMemory).stages.size(), 1u);
  devices = assume_devices("4x100GiB");
  devices.first_if_enough = true;
  EXPECT_EQ(plan_job(config, typical(config), devices, Balance::kMemory).stages.size(), 4u);
}

/// Edited up to layer 21, of which and those above steps are.
TEST(JobPlan, GraphsNeedTheLayersOfStepsOnOneGpu) {
  const ModelConfig config = llama_70b();
  Workload work = typical(config);
  const int64_t edited = work.edited_layers.back();
  ASSERT_EQ(work.steps_from, edited);
  work.step_launch = LaunchMode::kGraph;
  const auto words = [&](const std::string& devices) -> std::string {
    try {
      plan_job(config, work, assume_devices(devices), Balance::kMemory);
    } catch (const PlacementError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(words("400GiB"), "");
  EXPECT_NE(words("8x80GiB").find(cat("steps of value optimisation take layers ", edited,
                                      "-79 and the head, expected on "
                                      "one GPU, found on several devices: cuda:0: layers 0-")),
            std::string::npos);
  EXPECT_NE(words("cpu=400GiB").find("expected on a GPU, found on cpu"), std::string::npos);
  // refused for memory: the host is no remedy where the last layers would lie on it
  const std::string refusal = words("60GiB");
  EXPECT_NE(refusal.find("the job does not fit"), std::string::npos) << refusal;
  EXPECT_EQ(refusal.find("layers on the CPU"), std::string::npos) << refusal;
  work.step_launch = LaunchMode::kEachOperation;
  EXPECT_NE(words("60GiB").find("layers on the CPU"), std::string::npos);
  work.step_launch = LaunchMode::kGraph;
  work.optimizes_values = false;
  EXPECT_EQ(words("8x80GiB"), "");
}

TEST(JobPlan, RemediesOfTheJobAreTried) {
  const ModelConfig config = llama_70b();
  const auto refused = [&](const Workload& work, const std::string& devices) -> std::string {
    try {
      plan_job(config, work, assume_devices(devices), Balance::kMemory);
    } catch (const PlacementError& error) {
      return error.what();
    }
    return "";
  };
  Workload work = typical(config);
  work.value_batch = 100;
  const std::string batch = refused(work, "190GiB");
  EXPECT_NE(batch.find("editor.values.batch: "), std::string::npos) << batch;
  work.value_batch = 0;
  EXPECT_EQ(refused(work, "190GiB"), "");
  work.dtype = at::kFloat;
  EXPECT_NE(refused(work, "190GiB").find("run.dtype: bf16"), std::string::npos) << refused(work, "190GiB");
  EXPECT_NE(refused(typical(config), "cpu=1GiB").find("No single change"), std::string::npos);
}

TEST(JobPlan, WorkOfSeveralMethodsTakesWhatEachOfThemTakes) {
  const ModelConfig config = llama_70b();
  Workload stream = light_work(39), trained = light_work(2), other = typical(config);
  stream.batch = 50;
  stream.history_keys = 2000;
  trained.optimizes_values = false;
  trained.backward = BackwardNeeds{.batch = 4};
  const Stage whole{.device = Placement::host(), .begin = 0, .end = config.n_layers};
  const auto estimate = [&](const Workload& work) { return estimate_stage(config, work, whole, {4, 2}); };
  for (const auto& [one, another] :
       {std::pair{stream, other}, {other, stream}, {trained, other}, {stream, trained}, {other, trained}}) {
    const StageEstimate all = estimate(united(one, another));
    for (const Workload& work : {one, another}) {
      EXPECT_GE(all.edited, estimate(work).edited);
      EXPECT_GE(all.value_activations, estimate(work).value_activations);
      EXPECT_GE(all.value_prefix, estimate(work).value_prefix);
      EXPECT_GE(all.training, estimate(work).training);
      EXPECT_GE(all.statistics, estimate(work).statistics);
      EXPECT_GE(all.solve, estimate(work).solve);
    }
  }
  EXPECT_EQ(estimate(united(other, other)).total(), estimate(other).total());
}

TEST(JobPlan, ABatchIsWhatASolveSees) {
  const ModelConfig config = llama_70b();
  Workload work = light_work(39);
  work.requests = 5000;
  const Stage whole{.device = Placement::host(), .begin = 0, .end = config.n_layers};
  const auto solve = [&] { return estimate_stage(config, work, whole, {4, 2}).solve; };
  const int64_t together = solve();
  work.batch = 100;
  const int64_t batch = solve();
  EXPECT_LT(batch, together / 3);
  work.history_keys = 4900;
  EXPECT_GT(solve(), batch);
}

TEST(JobPlan, ValueBatchesFillTheRoomThatIsLeft) {
  const JobPlan narrow = plan_70b("2x100GiB"), wide = plan_70b("2x200GiB");
  EXPECT_GE(narrow.value_requests, 1);
  EXPECT_GT(wide.value_requests, narrow.value_requests);
  EXPECT_TRUE(wide.placement.room_bytes(wide.stages[1].stage.device).has_value());
}

/// They take what work leaves; batches of values do not get smaller for them.
TEST(JobPlan, KeepsFactorsWhereThereIsRoom) {
  const ModelConfig config = llama_70b();
  const Workload work = typical(config, SolveOn::kDevice);
  const int64_t square = 8 * int64_t{28672} * 28672, locked = KeptMatrices::locked_bytes(square);
  EXPECT_EQ(locked, 8 * kGiB);
  int64_t last = 0;
  for (int64_t gib = 180; gib <= 400; gib += 5) {
    DeviceChoice choice = assume_devices(cat(gib, "GiB"));
    choice.host_bytes = 40 * kGiB;
    const JobPlan plan = choose_plan(config, work, choice, Balance::kMemory);
    if (!plan.fits()) continue;
    const int64_t kept = plan.stages[0].kept;
    EXPECT_EQ(kept % square, 0);
    EXPECT_LE(kept, 5 * square);
    EXPECT_LE(plan.stages[0].total(), plan.stages[0].budget) << gib;
    EXPECT_EQ(plan.host ? plan.host->kept : 0, std::min<int64_t>(2, 5 - kept / square) * locked) << gib;
    last = kept;
    const ValueWork values{config, work.dtype, work.value_layer(), work.values};
    const int64_t step = work.values.step_tokens();
    const int64_t share = work.together() * step / plan.placement.batches_under_way();
    EXPECT_EQ(std::clamp<int64_t>(value_step_tokens(values, plan.placement, share) / step, 1, work.together()),
              plan.value_requests)
        << gib;
  }
  EXPECT_EQ(last, 5 * square);
}

}  // namespace
}  // namespace lancet
