// Covariances of the first three layers' keys, from token ids to moments.
#include <algorithm>
#include <numeric>
#include <string>

#include "benches.h"
#include "lancet/edit/covariance.h"
#include "machine.h"
#include "products.h"

namespace lancet::bench {
namespace {

void run_statistics(benchmark::State& state, const Subject& subject, const BenchOptions& options) {
  const CausalLM& model = subject.model;
  const ModelConfig& config = model.config();
  std::vector<int64_t> layers(static_cast<size_t>(std::min(options.statistics_layers, config.n_layers)));
  std::iota(layers.begin(), layers.end(), int64_t{0});
  const double seconds = time_iterations(state, [&] {
    for (const Covariance& covariance : collect_covariances(model, subject.corpus, layers))
      wait_for(covariance.moment_FF);
  });
  // The pass stops in front of the last layer's down projection; a moment is symmetric: half of F x F products.
  const double n_layers = static_cast<double>(layers.size());
  const double ffn = static_cast<double>(config.d_ffn);
  const double pass = n_layers * layer_parameters(config) - ffn * static_cast<double>(config.d_model);
  const double tokens = static_cast<double>(subject.corpus.tokens);
  const double peak = matmul_peak(model.placement().head_device(), model.placement().weight_dtype(), options.peak_size);
  const double flop = tokens * (2 * pass + n_layers * ffn * (ffn + 1));
  const double device_bytes = peak_device_bytes(model.placement().head_device());
  count(state, {.tokens = tokens, .flop = flop, .peak_flops = peak, .device_bytes = device_bytes}, seconds);
  state.counters["peak_share_full_gram"] = tokens * (2 * pass + n_layers * 2 * ffn * ffn) / peak / seconds;
}

}  // namespace

void register_statistics(const Subject& subject, const BenchOptions& options) {
  const std::string name = "statistics/layers:" + std::to_string(options.statistics_layers);
  benchmark::RegisterBenchmark(name.c_str(), [&](benchmark::State& state) { run_statistics(state, subject, options); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace lancet::bench
