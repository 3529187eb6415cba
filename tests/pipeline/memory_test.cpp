// What a plan says that each device will hold, beside what the fake devices counted.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/strings.h"
#include "lancet/eval/evaluate.h"
#include "lancet/plan/job_plan.h"
#include "lancet/statistics/derived_store.h"
#include "lancet/statistics/statistics_store.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/gptq_model.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::TempDir;
using testing::TinyModel;
using testing::TinyShape;

struct MemoryCase {
  const char* name;
  TinyShape shape;
  at::ScalarType dtype;
  int devices;
  int64_t requests;
  const char* config = nullptr;  ///< takes the place of the shape
  std::optional<Quantiser> quantised = {};
  bool is_gptq = false;
  SolveOn solve_on = SolveOn::kDevice;

  bool keeps_packed() const { return quantised || is_gptq; }
  TinyModel model() const {
    const std::string text = config != nullptr ? config : testing::config_text(shape);
    return is_gptq ? testing::gptq_model(text, 1) : TinyModel(text, 1);
  }
};

/// Eight experts of which a token goes through two.
constexpr const char* kExperts = R"({"architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 4096, "hidden_size": 64,
  "intermediate_size": 160, "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
  "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "torch_dtype": "float32",
  "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 48, "norm_topk_prob": true})";

/// Mamba-2's mixers, and attention in two of eight layers.
constexpr const char* kStateSpaces = R"({"architectures": ["BambaForCausalLM"], "vocab_size": 4096, "hidden_size": 64,
  "intermediate_size": 160, "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 256, "tie_word_embeddings": false, "torch_dtype": "float32", "attn_layer_indices": [2, 6],
  "mamba_n_heads": 8, "mamba_n_groups": 2, "mamba_d_state": 16, "mamba_expand": 2, "mamba_d_head": "auto"})";

/// Mixers beside attention in each layer.
constexpr const char* kMixersBeside = R"({"architectures": ["FalconH1ForCausalLM"], "vocab_size": 4096,
  "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 8, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 256, "tie_word_embeddings": false,
  "torch_dtype": "float32", "mamba_d_ssm": 128, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 2,
  "mamba_d_state": 16, "mamba_rms_norm": true})";

/// Mamba-1's mixers.
constexpr const char* kSelective = R"({"architectures": ["JambaForCausalLM"], "vocab_size": 4096, "hidden_size": 64,
  "intermediate_size": 160, "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 256, "tie_word_embeddings": false, "torch_dtype": "float32", "attn_layer_period": 4,
  "attn_layer_offset": 2, "num_experts": 1, "mamba_d_state": 16, "mamba_expand": 2})";

/// The gated delta rule's.
constexpr const char* kDeltaRule = R"({"architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text",
  "vocab_size": 4096, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 8, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 256, "tie_word_embeddings": false,
  "torch_dtype": "float32", "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16,
  "linear_value_head_dim": 24})";

/// Matrices that are large beside the activations.
constexpr TinyShape kWide{.n_layers = 5, .d_model = 192, .d_ffn = 512, .n_heads = 6, .n_kv_heads = 3};

void PrintTo(const MemoryCase& memory_case, std::ostream* out) { *out << memory_case.name; }

/// Peaks per device, above what was live before.
std::vector<int64_t> peaks_of(int devices, const std::function<void()>& work) {
  std::vector<int64_t> before, peaks;
  for (int i = 0; i < devices; ++i) before.push_back(testing::fake_bytes_live(i));
  testing::reset_fake_peaks();
  work();
  for (int i = 0; i < devices; ++i) peaks.push_back(testing::fake_bytes_peak(i) - before[static_cast<size_t>(i)]);
  return peaks;
}

/// `peak` may exceed the estimate by a tenth; the estimate may be `most` times the peak.
void expect_close(int64_t estimate, int64_t peak, double most, const std::string& what) {
  EXPECT_LE(static_cast<double>(peak), 1.1 * static_cast<double>(estimate)) << what;
  EXPECT_GE(most * static_cast<double>(peak), static_cast<double>(estimate)) << what;
}

/// A job by hand, stage of work by stage of work.
class PlannedJob {
 public:
  explicit PlannedJob(const MemoryCase& memory_case)
      : case_(memory_case),
        tiny_(memory_case.model()),
        requests_(testing::some_requests(memory_case.requests)),
        editor_(editor_with(0)),
        plan_(*tiny_.tokenizer, requests_, {.protocols = {"efficacy", "generation"}}, tiny_.config.max_positions) {
    options_.corpus = testing::write_corpus(folder_.path(), 200);
    options_.tokens = 2000;
    options_.cache = folder_ / "cache";
    corpus_ = read_corpus(*tiny_.tokenizer, options_, tiny_.config);
  }

  JobPlan plan() const {
    ResolvedJob job = testing::job_with_editor(editor_text(0));
    job.run.dtype = to_dtype(case_.dtype);
    if (case_.quantised) job.run.quantise_base = quantiser_name(*case_.quantised);
    job.run.solve_on = case_.solve_on;
    job.statistics = options_;
    for (const auto& document : corpus_.documents)
      job.statistics->document_tokens =
          std::max<int64_t>(&document == &corpus_.documents[0] ? 0 : job.statistics->document_tokens,
                            static_cast<int64_t>(document.size()));
    std::vector<std::string> assumptions;
    const Workload work = edit_work(job, tiny_.config, {tiny_.tokenizer.get(), requests_, plan_.size()}, assumptions);
    DeviceChoice choice;
    for (const at::Device device : testing::fake_devices(case_.devices)) choice.devices.push_back({device});
    return plan_job(tiny_.config, work, choice, Balance::kMemory);
  }

  CausalLM load(const Placement& placement) const {
    const QuantiseRule rule{editor_->targets(tiny_.config), case_.quantised};
    return CausalLM::load(tiny_.checkpoint, tiny_.config, placement, rule);
  }
  bool has_mixers() const { return !tiny_.config.recurrence.layers.empty(); }
  void evaluate(const CausalLM& model) const { plan_.run(model, "test", alone()); }
  void collect_statistics(const CausalLM& model) const {
    StatisticsStore moments(model, tiny_.checkpoint, corpus_, options_.cache);
    factors(model, moments).prepare(kLayers, alone());
  }
  void optimize(const CausalLM& model, int64_t batch) const {
    const std::vector<PreparedRequest> prepared =
        prepare_requests(*tiny_.tokenizer, requests_, editor_->contexts()->templates);
    optimize_values(model, prepared, kLayers.back(), {.steps = 2, .lr = 0.1, .batch = batch}, {alone()});
  }
  void edit(CausalLM& model, int64_t batch) const {
    StatisticsStore moments(model, tiny_.checkpoint, corpus_, options_.cache);
    const FactorStore store = factors(model, moments);
    const EditContext context(model, *tiny_.tokenizer, editor_->contexts()->templates,
                              {.factor = [&](int64_t layer) { return store.load(layer); }}, {alone()});
    WeightTransaction transaction(model);
    const auto editor = editor_with(batch);
    EditorState state = editor->make_state();
    editor->edit(context, requests_, state, transaction);
    transaction.round_as_written();
    evaluate(model);
  }

 private:
  static std::string editor_text(int64_t batch) {
    return cat("{method: memit, layers: [1, 2], values: {steps: 2, lr: 0.1, batch: ", batch,
               "}, contexts: ['{}', 'I know. {}']}");
  }
  static std::unique_ptr<Editor> editor_with(int64_t batch) { return testing::editor_from(editor_text(batch)); }
  FactorStore factors(const CausalLM& model, StatisticsStore& moments) const {
    return {moments, model.placement(), tiny_.config, options_.cache, 1e-3};
  }

  inline static const std::vector<int64_t> kLayers{1, 2};
  MemoryCase case_;
  TinyModel tiny_;
  TempDir folder_;
  std::vector<EditRequest> requests_;
  std::unique_ptr<Editor> editor_;
  EvaluationPlan plan_;
  StatisticsOptions options_;
  CorpusTokens corpus_;
};

class PlannedMemory : public ::testing::TestWithParam<MemoryCase> {};

TEST_P(PlannedMemory, IsWhatTheDevicesHold) {
  const MemoryCase& memory_case = GetParam();
  const PlannedJob job(memory_case);
  JobPlan plan = job.plan();
  ASSERT_EQ(plan.stages.size(), static_cast<size_t>(memory_case.devices));
  // Batches that meet on a device by chance would make the lower bound one.
  plan.placement.set_batches_under_way(1);
  const auto batches = memory_case.devices;
  std::optional<CausalLM> model;
  const auto expect = [&](const char* what, const std::vector<int64_t>& peaks, const auto& estimate,
                          double most = 2.0) {
    for (size_t i = 0; i < peaks.size(); ++i) {
      const StageEstimate& stage = plan.stages[i];
      if (estimate(stage) > 0 || peaks[i] > 50'000)
        expect_close(estimate(stage), peaks[i], most,
                     cat(memory_case.name, ": ", what, " on device ", i, ", layers ", stage.stage.begin, "-",
                         stage.stage.end - 1));
    }
  };
  std::vector<int64_t> loaded;
  for (int i = 0; i < batches; ++i) loaded.push_back(-testing::fake_bytes_live(i));
  const std::vector<int64_t> loading = peaks_of(batches, [&] { model.emplace(job.load(plan.placement)); });
  for (int i = 0; i < batches; ++i) loaded[static_cast<size_t>(i)] += testing::fake_bytes_live(i);
  expect(
      "weights", loaded, [](const StageEstimate& s) { return s.weights; }, 1.1);
  // Of numbers that change their type up to 64 MiB are under way, which is more than these models.
  for (size_t i = 0; i < loading.size() && memory_case.dtype == at::kFloat; ++i)
    EXPECT_LE(static_cast<double>(loading[i]),
              1.1 * static_cast<double>(plan.stages[i].weights + plan.stages[i].loading))
        << memory_case.name << ": loading on device " << i;
  // What unpacking takes at its fullest is counted for formats whose numbers are not unpacked in place.
  // A mixer takes documents of one length together: how many a pack has is not known, and counted as all of them.
  const double most = job.has_mixers() ? 6.0 : memory_case.keeps_packed() ? 4.0 : 2.0;
  const auto unpacked = [&](const StageEstimate& s) { return s.unpacked / batches; };  // for one batch under way
  expect(
      "evaluate", peaks_of(batches, [&] { job.evaluate(*model); }),
      [&](const StageEstimate& s) { return s.evaluate + unpacked(s); }, most);
  expect(
      "statistics", peaks_of(batches, [&] { job.collect_statistics(*model); }),
      [&](const StageEstimate& s) { return s.statistics > 0 ? s.statistics + unpacked(s) : 0; }, most);
  expect(
      "values", peaks_of(batches, [&] { job.optimize(*model, plan.value_requests); }),
      [&](const StageEstimate& s) { return (s.value_activations + s.value_prefix) / batches + unpacked(s); },
      1.5 * most);  // set-up attends to rows of one length at a time, which is counted as all at once
  // What a solve takes is estimated roughly, which shows where nothing else is as large.
  expect(
      "edit", peaks_of(batches, [&] { job.edit(*model, plan.value_requests); }),
      [&](const StageEstimate& s) {
        return s.edited + unpacked(s) +
               std::max({s.evaluate, (s.value_activations + s.value_prefix) / batches, s.solve});
      },
      job.has_mixers() ? most : 3.0);
}

/// Methods that train, on the devices of the first cases.
class PlannedTraining : public ::testing::TestWithParam<SolveOn> {};

TEST_P(PlannedTraining, BoundsWhatTheDevicesHold) {
  for (const char* editor : {"{method: ft-m, modules: {down: [2, 5]}, steps: 2, weight_decay: 0.1, batch: 4}",
                             "{method: ft, modules: {up: [1], down: [6]}, steps: 2}",
                             "{method: memit, layers: [2, 5], covariance_weight: 20, contexts: ['{}'], values: {steps: "
                             "2}, repair: {steps: 2, batch: 4, margin: 9}}",
                             "{method: ultraedit, modules: {gate: [2], down: [2, 5]}, batch: 3, tokens: all}"}) {
    for (const int devices : {1, 3}) {
      const TinyModel tiny({.n_layers = 8, .d_model = 64, .d_ffn = 192});
      const std::vector<EditRequest> requests = testing::some_requests(6);
      ResolvedJob job = testing::job_with_editor(editor);
      job.run.dtype = DType::kF32;
      job.run.solve_on = GetParam();
      std::vector<std::string> assumptions;
      const Workload work = edit_work(job, tiny.config, {tiny.tokenizer.get(), requests, {}}, assumptions);
      EXPECT_TRUE(assumptions.empty());
      DeviceChoice choice;
      for (const at::Device device : testing::fake_devices(devices)) choice.devices.push_back({device});
      const JobPlan plan = plan_job(tiny.config, work, choice, Balance::kMemory);
      CausalLM model = CausalLM::load(tiny.checkpoint, tiny.config, plan.placement);
      const std::vector<int64_t> peaks = peaks_of(devices, [&] {
        WeightTransaction transaction(model);
        EditorState state = job.editor->make_state();
        const auto factor = [&](int64_t layer) {
          return torch::eye(192, torch::kDouble).to(model.placement().solve_device(layer));
        };
        job.editor->edit({model, *tiny.tokenizer, {"{}"}, {.factor = factor}, {alone()}}, requests, state, transaction);
      });
      for (size_t i = 0; i < peaks.size(); ++i) {
        const StageEstimate& stage = plan.stages[i];
        const int64_t values = stage.value_activations + stage.value_prefix;
        const auto estimate = static_cast<double>(stage.edited + std::max({stage.training, stage.solve, values}));
        EXPECT_LE(static_cast<double>(peaks[i]), 1.1 * estimate) << editor << ": device " << i << " of " << devices;
        // methods that read one place of a prompt for all of a target have fewer logits than is counted
        EXPECT_GE(3.5 * static_cast<double>(peaks[i]), estimate) << editor << ": device " << i << " of " << devices;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Solves, PlannedTraining, ::testing::Values(SolveOn::kDevice, SolveOn::kHost));

/// Measures a device from before loading to the end of the job.
TEST_P(PlannedMemory, BoundsAWholeJobWithBatchesUnderWay) {
  const MemoryCase& memory_case = GetParam();
  const PlannedJob job(memory_case);
  const JobPlan plan = job.plan();
  EXPECT_EQ(plan.placement.batches_under_way(), memory_case.devices);
  const std::vector<int64_t> peaks = peaks_of(memory_case.devices, [&] {
    CausalLM model = job.load(plan.placement);
    job.collect_statistics(model);
    job.edit(model, plan.value_requests);  // which evaluates
  });
  for (size_t i = 0; i < peaks.size(); ++i)
    EXPECT_LE(static_cast<double>(peaks[i]), 1.1 * static_cast<double>(plan.stages[i].total()))
        << memory_case.name << ": device " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Models, PlannedMemory,
    ::testing::Values(
        MemoryCase{"f32 on one", {.n_layers = 8, .d_model = 64, .d_ffn = 192}, at::kFloat, 1, 6},
        MemoryCase{"f32 on three", {.n_layers = 8, .d_model = 64, .d_ffn = 192}, at::kFloat, 3, 6},
        MemoryCase{"f64 on two",
                   {.n_layers = 6, .d_model = 96, .d_ffn = 256, .n_heads = 6, .n_kv_heads = 3},
                   at::kDouble,
                   2,
                   12},
        MemoryCase{"bf16 on two",
                   {.n_layers = 8, .d_model = 128, .d_ffn = 384, .n_heads = 8, .n_kv_heads = 2},
                   at::kBFloat16,
                   2,
                   12},
        MemoryCase{"f32 tied on two",
                   {.n_layers = 8, .d_model = 128, .d_ffn = 448, .tied_embeddings = true},
                   at::kFloat,
                   2,
                   24},
        MemoryCase{"experts in f32 on one", {}, at::kFloat, 1, 6, kExperts},
        MemoryCase{"experts in bf16 on two", {}, at::kBFloat16, 2, 12, kExperts},
        MemoryCase{"state spaces in f32 on one", {}, at::kFloat, 1, 6, kStateSpaces},
        MemoryCase{"state spaces in bf16 on two", {}, at::kBFloat16, 2, 12, kStateSpaces},
        MemoryCase{"mixers beside attention in f32 on one", {}, at::kFloat, 1, 6, kMixersBeside},
        MemoryCase{"selective state spaces in f32 on one", {}, at::kFloat, 1, 6, kSelective},
        MemoryCase{"delta rule in f32 on one", {}, at::kFloat, 1, 6, kDeltaRule},
        MemoryCase{"int8 on one", kWide, at::kFloat, 1, 6, nullptr, Quantiser::kInt8},
        MemoryCase{"nf4 on three", kWide, at::kFloat, 3, 6, nullptr, Quantiser::kNf4},
        MemoryCase{"nf4 in bf16 on two", kWide, at::kBFloat16, 2, 12, nullptr, Quantiser::kNf4},
        MemoryCase{"fp8 in f64 on two", kWide, at::kDouble, 2, 12, nullptr, Quantiser::kFloat8},
        MemoryCase{"gptq on one", kWide, at::kFloat, 1, 6, nullptr, {}, true},
        MemoryCase{"gptq in bf16 on three", kWide, at::kBFloat16, 3, 6, nullptr, {}, true},
        MemoryCase{"experts in nf4 on two", {}, at::kFloat, 2, 12, kExperts, Quantiser::kNf4},
        MemoryCase{"experts in gptq on one", {}, at::kFloat, 1, 6, kExperts, {}, true},
        MemoryCase{"f32 on one, solves on the host", kWide, at::kFloat, 1, 6, nullptr, {}, false, SolveOn::kHost},
        MemoryCase{"f64 on three, solves on the host", kWide, at::kDouble, 3, 12, nullptr, {}, false, SolveOn::kHost},
        MemoryCase{"nf4 in bf16 on two, solves on the host", kWide, at::kBFloat16, 2, 12, nullptr, Quantiser::kNf4,
                   false, SolveOn::kHost},
        MemoryCase{
            "experts in f32 on two, solves on the host", {}, at::kFloat, 2, 6, kExperts, {}, false, SolveOn::kHost},
        MemoryCase{"gptq on one, solves on the host", kWide, at::kFloat, 1, 6, nullptr, {}, true, SolveOn::kHost}));

/// Keys so wide that a square of them, 8 F^2 bytes, is more than an edit takes beside it.
TEST(SolvesOnTheHost, TakeNoSquareOfKeysOnADevice) {
  constexpr int64_t kWidth = 1792, kSquare = 8 * kWidth * kWidth;
  constexpr TinyShape kWideKeys{.n_layers = 4, .d_model = 32, .d_ffn = kWidth};
  struct Peaks {
    int64_t statistics = 0, edit = 0, planned = 0;
  };
  const auto peaks_with = [&](SolveOn where) {
    const PlannedJob job({"wide keys", kWideKeys, at::kFloat, 1, 4, nullptr, {}, false, where});
    const JobPlan plan = job.plan();
    EXPECT_EQ(plan.placement.solve_on() == SolveOn::kHost, where == SolveOn::kHost);
    CausalLM model = job.load(plan.placement);
    const int64_t statistics = peaks_of(1, [&] { job.collect_statistics(model); }).front();
    const int64_t edit = peaks_of(1, [&] { job.edit(model, 1); }).front();
    return Peaks{statistics, edit, plan.stages.front().total()};
  };
  const Peaks there = peaks_with(SolveOn::kDevice), on_host = peaks_with(SolveOn::kHost);
  EXPECT_GE(there.statistics - on_host.statistics, 2 * kSquare) << "the sums of two layers";
  EXPECT_GT(there.edit, kSquare);
  EXPECT_LT(on_host.edit, kSquare);
  EXPECT_LT(on_host.planned, there.planned - 2 * kSquare);
}

}  // namespace
}  // namespace lancet
