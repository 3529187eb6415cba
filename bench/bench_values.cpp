// One step of value optimisation, forward and backward, and the same matrix products alone, in turn: what a step costs
// over the arithmetic that it cannot do without. That counts each row's positions from the subject's last token on, the
// drift row's one, and logits where a loss reads them; no padding.
#include <torch/types.h>

#include <algorithm>
#include <string>

#include "benches.h"
#include "lancet/training/values.h"
#include "machine.h"
#include "products.h"

namespace lancet::bench {
namespace {

/// Steps of the shorter one of two optimisations, and those between the two, whose times are subtracted: preparation,
/// what captures a graph, and the last, forward-only step cancel.
constexpr int kFirstSteps = 2, kSteps = 8;

/// Rows that the matrices see in one step of one batch.
struct StepRows {
  int64_t tokens = 0;
  int64_t labels = 0;
};

StepRows rows_of(const PreparedRequest& request) {
  const int64_t n_targets = static_cast<int64_t>(request.target.size());
  StepRows rows{1, 1};  // the drift row: one position, whose distribution is read
  for (const LocatedPrompt& prompt : request.prompts) {
    rows.tokens += static_cast<int64_t>(prompt.ids.size()) - prompt.lookup + n_targets - 1;
    rows.labels += n_targets;
  }
  return rows;
}

/// Requests of similar length go together, as in the optimiser.
std::vector<StepRows> plan_rows(std::span<const PreparedRequest> requests, int64_t batch) {
  std::vector<StepRows> each;
  for (const PreparedRequest& request : requests) each.push_back(rows_of(request));
  std::stable_sort(each.begin(), each.end(), [](StepRows a, StepRows b) { return a.tokens < b.tokens; });
  std::vector<StepRows> batches;
  for (size_t i = 0; i < each.size(); ++i) {
    if (i % static_cast<size_t>(batch) == 0) batches.emplace_back();
    batches.back().tokens += each[i].tokens;
    batches.back().labels += each[i].labels;
  }
  return batches;
}

/// The products of one step over all batches.
class StepProducts {
 public:
  StepProducts(const CausalLM& model, int64_t layer, std::vector<StepRows> batches)
      : batches_(std::move(batches)),
        layers_(layer_matrices(model, {layer + 1, model.config().n_layers}), most(&StepRows::tokens)),
        head_({head_matrix(model)}, most(&StepRows::labels)) {}

  void run() const {
    for (const StepRows& rows : batches_) {
      layers_.forward_and_backward(rows.tokens);
      head_.forward_and_backward(rows.labels);
    }
  }

  Work work() const {
    Work work;
    for (const StepRows& rows : batches_) {
      work.tokens += static_cast<double>(rows.tokens);
      work.flop += layers_.flop(rows.tokens) + head_.flop(rows.labels);
    }
    return work;
  }

 private:
  int64_t most(int64_t StepRows::*count) const {
    int64_t most = 0;
    for (const StepRows& rows : batches_) most = std::max(most, rows.*count);
    return most;
  }

  std::vector<StepRows> batches_;
  ProductRunner layers_;
  ProductRunner head_;
};

void run_values(benchmark::State& state, const Subject& subject, const BenchOptions& options) {
  const CausalLM& model = subject.model;
  const int64_t layer = std::min(options.value_layer, model.config().n_layers - 2);
  const std::span requests = std::span(subject.requests).first(static_cast<size_t>(state.range(0)));
  ValueOptions values;
  values.stop_loss = 0;  // every request stays to the end
  if (options.value_batch > 0) values.batch = options.value_batch;
  const auto optimise = [&](int64_t steps) {
    values.steps = steps;
    return seconds_of([&] {
      wait_for(optimize_values(model, requests, layer, values, {alone(), nullptr, options.run.step_launch}).z_ND);
    });
  };
  values.steps = 1;
  const int64_t largest =
      optimize_values(model, requests, layer, values, {alone(), nullptr, options.run.step_launch}).batching.largest;
  const StepProducts products(model, layer, plan_rows(requests, largest));
  products.run();
  double step_s = 0, products_s = 0;
  for (auto _ : state) {
    const double step = std::max((optimise(kFirstSteps + kSteps) - optimise(kFirstSteps)) / kSteps, 1e-9);
    state.SetIterationTime(step);
    step_s += step;
    for (int i = 0; i < kSteps; ++i) products_s += seconds_of([&] { products.run(); }) / kSteps;
  }
  const double iterations = static_cast<double>(state.iterations());
  Work work = products.work();
  work.peak_flops = matmul_peak(model.placement().head_device(), model.placement().weight_dtype(), options.peak_size);
  work.device_bytes = peak_device_bytes(model.placement().head_device());
  count(state, work, step_s / iterations);
  state.counters["products_ms"] = 1e3 * products_s / iterations;
  state.counters["step/products"] = step_s / products_s;
  const double edits = static_cast<double>(state.range(0));
  // the preparation of a batch is left out
  state.counters["edits/h@" + std::to_string(options.value_steps) + "steps"] =
      3600 * edits / (static_cast<double>(options.value_steps) * step_s / iterations);
  state.counters["ms/request"] = 1e3 * step_s / iterations / static_cast<double>(state.range(0));
}

/// The whole optimisation of one edit's requests, as an editor asks for it: preparation, every step, the values.
void run_whole_values(benchmark::State& state, const Subject& subject, const BenchOptions& options, double stop_loss) {
  const CausalLM& model = subject.model;
  const int64_t layer = std::min(options.value_layer, model.config().n_layers - 2);
  const std::span requests = std::span(subject.requests).first(static_cast<size_t>(state.range(0)));
  ValueOptions values;
  values.stop_loss = stop_loss;
  if (options.value_batch > 0) values.batch = options.value_batch;
  OptimizedValues found;
  const auto optimise = [&](int64_t steps) {
    values.steps = steps;
    found = optimize_values(model, requests, layer, values, {alone(), nullptr, options.run.step_launch});
    wait_for(found.z_ND);
  };
  optimise(2);  // libraries are loaded, memory is there
  const double seconds = time_iterations(state, [&] { optimise(options.value_steps); });
  double steps = 0;
  for (const auto& losses : found.losses) steps += static_cast<double>(losses.size());
  const double edits = static_cast<double>(state.range(0));
  count(state, {.device_bytes = peak_device_bytes(model.placement().head_device())}, seconds);
  state.counters["edits/h"] = 3600 * edits / seconds;
  state.counters["steps/request"] = steps / edits;
  state.counters["largest_batch"] = static_cast<double>(found.batching.largest);
}

}  // namespace

void register_values(const Subject& subject, const BenchOptions& options) {
  const auto add = [&](const std::string& name, auto work) {
    auto* added = benchmark::RegisterBenchmark(name.c_str(), work);
    added->ArgName("requests")->UseManualTime()->Unit(benchmark::kMillisecond);
    for (const int64_t requests : options.value_requests) added->Arg(requests);
  };
  add("value_step", [&](benchmark::State& state) { run_values(state, subject, options); });
  add("values/default_stop",
      [&](benchmark::State& state) { run_whole_values(state, subject, options, ValueOptions().stop_loss); });
  add("values/no_stop", [&](benchmark::State& state) { run_whole_values(state, subject, options, 0); });
}

}  // namespace lancet::bench
