// Covariances of some layers' keys, from token ids to moments; and what comes before, from text to token ids.
#include <algorithm>

#include "benches.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/plan/model_session.h"
#include "lancet/statistics/covariance.h"
#include "machine.h"
#include "products.h"

namespace lancet::bench {
namespace {

/// Tokens that go through the layers: those that documents share, once.
int64_t rows_run(const CorpusTokens& corpus, int64_t chunk_tokens) {
  int64_t rows = 0;
  for (const std::vector<int64_t>& pack : plan_packs(corpus.documents, chunk_tokens)) {
    std::vector<std::span<const TokenId>> documents;
    for (const int64_t index : pack) documents.emplace_back(corpus.documents[static_cast<size_t>(index)]);
    rows += make_packed_batch(documents).ids_BT.size(1);
  }
  return rows;
}

void run_statistics(benchmark::State& state, const Subject& subject, const BenchOptions& options) {
  const CausalLM& model = subject.model;
  const ModelConfig& config = model.config();
  const std::vector<int64_t>& layers = options.statistics_layers;
  if (layers.empty() || layers.back() >= config.n_layers || layers.front() < 0 || !std::ranges::is_sorted(layers))
    throw ConfigError(cat("--statistics-layers: expected ascending layers of 0 to ", config.n_layers - 1));
  const int64_t chunk_tokens = statistics_chunk_tokens(config, model.placement(), layers);
  const double seconds = time_iterations(state, [&] {
    for (const Covariance& covariance :
         collect_covariances(model, subject.corpus, layers, alone(), {.chunk_tokens = chunk_tokens}))
      wait_for(covariance.moment_FF);
  });
  // The pass stops before the last layer's down projection; a moment is symmetric: half of F x F products.
  const double n_layers = static_cast<double>(layers.size());
  const double n_passed = static_cast<double>(layers.back() + 1);
  const double ffn = static_cast<double>(config.d_ffn);
  const double pass = n_passed * layer_parameters(config) - ffn * static_cast<double>(config.d_model);
  const double rows = static_cast<double>(rows_run(subject.corpus, chunk_tokens));
  const double peak = matmul_peak(model.placement().head_device(), model.placement().weight_dtype(), options.peak_size);
  const Work work{.tokens = static_cast<double>(subject.corpus.tokens),
                  .flop = rows * (2 * pass + n_layers * ffn * (ffn + 1)),
                  .peak_flops = peak,
                  .device_bytes = peak_device_bytes(model.placement().head_device())};
  count(state, work, seconds);
  state.counters["peak_share_full_gram"] = rows * (2 * pass + n_layers * 2 * ffn * ffn) / peak / seconds;
  state.counters["rows/token"] = rows / work.tokens;
  state.counters["chunk_tokens"] = static_cast<double>(chunk_tokens);
}

void run_read_corpus(benchmark::State& state, const BenchOptions& options) {
  const ModelFiles files = open_model(options.model, {});
  StatisticsOptions statistics;
  statistics.corpus = options.corpus;
  statistics.tokens = options.statistics_tokens;
  int64_t tokens = 0;
  const double seconds =
      time_iterations(state, [&] { tokens = read_corpus(*files.tokenizer, statistics, files.config).tokens; });
  count(state, {.tokens = static_cast<double>(tokens)}, seconds);
}

}  // namespace

void register_statistics(const Subject& subject, const BenchOptions& options) {
  const std::string name = cat("statistics/layers:", options.statistics_layers.size());
  benchmark::RegisterBenchmark(name.c_str(), [&](benchmark::State& state) { run_statistics(state, subject, options); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
  if (!options.shape.empty()) return;  // its corpus is random ids
  benchmark::RegisterBenchmark("read_corpus", [&](benchmark::State& state) { run_read_corpus(state, options); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace lancet::bench
