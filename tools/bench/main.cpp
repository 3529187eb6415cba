// lancet_bench: the stages of an edit beside what the machine can do.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <string>

#include "benches.h"
#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "machine.h"

namespace lancet::bench {
namespace {

void add_options(CLI::App& app, BenchOptions& options, DType& dtype) {
  const std::filesystem::path data = std::filesystem::path(LANCET_SOURCE_DIR) / "data";
  options.model = data / "demo-model";
  options.requests = data / "requests" / "demo.json";
  options.corpus = data / "requests" / "demo-corpus.txt";
  const std::map<std::string, DType> dtypes{{"f32", DType::kF32}, {"bf16", DType::kBF16}};
  auto* model = app.add_option("--model", options.model, "Model folder (default: the demo model)");
  app.add_option("--shape", options.shape,
                 "Random weights instead: hidden=2048,ffn=8192,layers=4,heads=32,kv_heads=8,vocab=4096")
      ->excludes(model);
  app.add_option("--requests", options.requests, "Request file, 512 records or more, for --model");
  app.add_option("--corpus", options.corpus, "A document per line, for --model");
  app.add_option("--dtype", dtype, "Weights and activations: f32 (default), bf16")
      ->transform(CLI::CheckedTransformer(dtypes));
  app.add_option("--devices", options.run.devices, "As run.devices of a job");
  app.add_option("--threads", options.run.threads, "CPU threads; 0: all");
  app.add_option("--peak-size", options.peak_size, "The peak is measured on products of this size");
  app.add_option("--value-layer", options.value_layer, "Values are optimised at the output of this layer");
  app.add_option("--value-batch", options.value_batch, "Requests optimised together; 0: the editor's default");
  app.add_option("--statistics-tokens", options.statistics_tokens, "Tokens of the statistics benchmark");
  app.add_option("--statistics-layers", options.statistics_layers, "Ascending layers of the statistics benchmark")
      ->delimiter(',');
  app.add_option("--solve-sizes", options.solve_sizes, "Widths of the ridge solves")->delimiter(',');
}

void describe(const Subject& subject, const BenchOptions& options) {
  const ModelConfig& config = subject.model.config();
  benchmark::AddCustomContext("model", options.shape.empty() ? options.model.filename().string() : options.shape);
  benchmark::AddCustomContext("layers", std::to_string(config.n_layers));
  benchmark::AddCustomContext("dtype", at::toString(subject.model.placement().weight_dtype()));
  benchmark::AddCustomContext("placement", subject.model.placement().description());
  benchmark::AddCustomContext("threads", std::to_string(at::get_num_threads()));
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);  // takes its own flags out
  BenchOptions options;
  DType dtype = DType::kF32;
  CLI::App app{"Times of lancet's stages. Google Benchmark's flags work too: --benchmark_filter=value_step"};
  add_options(app, options, dtype);
  CLI11_PARSE(app, argc, argv);
  options.run.dtype = dtype;
  set_verbosity(Verbosity::kQuiet);
  const Subject subject = make_subject(options);
  describe(subject, options);
  register_matmul(subject, options);
  register_forward(subject, options);
  register_values(subject, options);
  register_statistics(subject, options);
  register_solve(subject, options);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace lancet::bench

int main(int argc, char** argv) {
  try {
    return lancet::bench::run(argc, argv);
  } catch (const lancet::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return static_cast<int>(error.exit_code());
  }
}
