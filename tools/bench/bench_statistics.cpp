// Covariances of the first three layers' keys, from token ids to moments.
#include <algorithm>
#include <numeric>

#include "benches.h"
#include "lancet/edit/covariance.h"
#include "machine.h"
#include "products.h"

namespace lancet::bench {
namespace {

constexpr int64_t kLayers = 3;

void run_statistics(benchmark::State& state, const Subject& subject, const BenchOptions& options) {
  const CausalLM& model = subject.model;
  const ModelConfig& config = model.config();
  std::vector<int64_t> layers(static_cast<size_t>(std::min(kLayers, config.n_layers)));
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
  count(state, {.tokens = tokens, .flop = tokens * (2 * pass + n_layers * ffn * (ffn + 1)), .peak_flops = peak},
        seconds);
  state.counters["peak_share_full_gram"] = tokens * (2 * pass + n_layers * 2 * ffn * ffn) / peak / seconds;
}

}  // namespace

void register_statistics(const Subject& subject, const BenchOptions& options) {
  benchmark::RegisterBenchmark("statistics/layers:3",
                               [&](benchmark::State& state) { run_statistics(state, subject, options); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace lancet::bench
