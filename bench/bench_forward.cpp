// The machine's matrix products, and a forward pass of the whole model beside them.
#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "benches.h"
#include "lancet/models/batching.h"
#include "lancet/plan/model_session.h"
#include "machine.h"
#include "products.h"

namespace lancet::bench {
namespace {

void run_matmul(benchmark::State& state, at::Device device, at::ScalarType dtype, int64_t size) {
  const torch::NoGradGuard no_grad;
  const auto options = torch::TensorOptions(dtype).device(device);
  const Tensor a = torch::randn({size, size}, options), b = torch::randn({size, size}, options);
  const double peak = matmul_peak(device, dtype, size);
  const double seconds = time_iterations(state, [&] { wait_for(torch::matmul(a, b)); });
  const double n = static_cast<double>(size);
  count(state, {.flop = 2 * n * n * n}, seconds);
  state.counters["peak_TFLOP/s"] = peak / 1e12;  // the best product, which every other benchmark's share refers to
}

/// Every layer on full rows; the head on each row's last position, as lancet's own passes use it.
void run_forward(benchmark::State& state, const CausalLM& model, const BenchOptions& options) {
  const torch::NoGradGuard no_grad;
  const ModelConfig& config = model.config();
  const int64_t width = std::min<int64_t>(128, config.max_positions);
  const int64_t rows = kForwardTokens / width;
  TokenBatch batch;
  batch.ids_BT = torch::randint(config.vocab_size, {rows, width}, torch::kLong);
  batch.sequence.lengths.assign(static_cast<size_t>(rows), width);
  batch.sequence.positions_BT = torch::arange(width).expand({rows, width});
  const double seconds = time_iterations(state, [&] {
    const Tensor last_BTD =
        model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
    wait_for(model.logits(last_BTD.select(1, width - 1)));
  });
  const double tokens = static_cast<double>(rows * width);
  const double head = static_cast<double>(config.vocab_size * config.d_model * rows);
  const double peak = matmul_peak(model.placement().head_device(), model.placement().weight_dtype(), options.peak_size);
  const double flop = 2 * (static_cast<double>(config.n_layers) * layer_parameters(config) * tokens + head);
  const double device_bytes = peak_device_bytes(model.placement().head_device());
  count(state, {.tokens = tokens, .flop = flop, .peak_flops = peak, .device_bytes = device_bytes}, seconds);
}

}  // namespace

void register_matmul(const Subject& subject, const BenchOptions& options) {
  const at::Device device = subject.model.placement().head_device();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const std::string name = "matmul/" + std::string(dtype == at::kFloat ? "f32" : "bf16");
    benchmark::RegisterBenchmark(name.c_str(), run_matmul, device, dtype, options.peak_size)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

void register_forward(const Subject& subject, const BenchOptions& options) {
  benchmark::RegisterBenchmark("forward", [&](benchmark::State& state) { run_forward(state, subject.model, options); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
  if (!options.shape.empty()) return;  // made-up weights lie in no file that could be quantised while it is loaded
  const auto latest = std::make_shared<std::pair<Quantiser, std::optional<CausalLM>>>();
  for (const Quantiser quantiser : {Quantiser::kInt8, Quantiser::kFloat8, Quantiser::kNf4}) {
    const auto run = [&options, quantiser, latest](benchmark::State& state) {
      if (!latest->second || latest->first != quantiser) {
        latest->second.reset();
        RunOptions quantised = options.run;
        quantised.quantise_base = quantiser_name(quantiser);
        const ModelFiles files = open_model(options.model, {});
        latest->second.emplace(load_model(files, quantised, evaluation_work(quantised, files.config, {})));
        latest->first = quantiser;
      }
      run_forward(state, *latest->second, options);
    };
    benchmark::RegisterBenchmark(("forward/" + std::string(quantiser_name(quantiser))).c_str(), run)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace lancet::bench
