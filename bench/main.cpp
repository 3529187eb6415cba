// lancet_bench: the stages of an edit beside what the machine can do.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "benches.h"
#include "file_times.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/tensor.h"
#include "machine.h"
#include "synthetic.h"

namespace lancet::bench {
namespace {

/// Returns the folder beside the program's, as in a bundle; else the repository's.
std::filesystem::path data_folder() {
  std::error_code error;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "data";
  return std::filesystem::is_directory(beside, error) ? beside : std::filesystem::path(LANCET_SOURCE_DIR) / "data";
}

/// What is done instead of the benchmarks.
void add_file_options(CLI::App& app, BenchOptions& options) {
  const std::map<std::string, FileTimes> file_times{{"load", FileTimes::kLoad},
                                                    {"load,export", FileTimes::kLoadAndExport}};
  auto* to = app.add_option("--export-to", options.export_to, "New folder for --file-times load,export");
  app.add_option("--file-times", options.file_times, "Only time one load of --model, or load,export; prints JSON")
      ->transform(CLI::CheckedTransformer(file_times))
      ->excludes("--shape");
  to->needs("--file-times");
  app.add_option("--make-checkpoint", options.make_checkpoint,
                 "Only write random weights of --shape to this new folder")
      ->needs("--shape");
  app.add_option("--shard-bytes", options.shard_bytes, "Of that checkpoint")->check(CLI::PositiveNumber);
}

/// Returns false when the benchmarks are to run.
bool did_file_work(const BenchOptions& options) {
  if (!options.make_checkpoint.empty()) {
    std::error_code error;
    if (!std::filesystem::create_directory(options.make_checkpoint, error))
      throw ConfigError("--make-checkpoint: " + options.make_checkpoint.string() + ": expected a new folder");
    write_random_checkpoint(options.make_checkpoint, parse_shape(options.shape),
                            options.run.dtype.value_or(DType::kF32), options.shard_bytes);
    return true;
  }
  if (options.file_times == FileTimes::kNone) return false;
  if ((options.file_times == FileTimes::kLoadAndExport) == options.export_to.empty())
    throw ConfigError("--export-to: expected with --file-times load,export, and only there");
  run_file_times(options);
  return true;
}

void add_options(CLI::App& app, BenchOptions& options, DType& dtype) {
  const std::filesystem::path data = data_folder();
  options.model = data / "demo-model";
  options.requests = data / "requests" / "demo.json";
  options.corpus = data / "requests" / "demo-corpus.txt";
  const std::map<std::string, DType> dtypes{{"f32", DType::kF32}, {"bf16", DType::kBF16}};
  auto* model = app.add_option("--model", options.model, "Model folder (default: the demo model)");
  app.add_option("--shape", options.shape,
                 "Random weights instead: llama-3-8b or another published size, "
                 "hidden=2048,ffn=8192,layers=4,heads=32,kv_heads=8,vocab=4096, or a name with changes after it")
      ->excludes(model);
  app.add_option("--requests", options.requests, "Request file, 512 records or more, for --model");
  app.add_option("--corpus", options.corpus, "A document per line, for --model");
  app.add_option("--dtype", dtype, "Weights and activations: f32 (default), bf16")
      ->transform(CLI::CheckedTransformer(dtypes));
  app.add_option("--device,--devices", options.run.devices, "As run.devices of a job: auto (default), cpu, cuda:0");
  app.add_option("--threads", options.run.threads, "CPU threads; 0: all");
  app.add_option("--peak-size", options.peak_size, "The peak is measured on products of this size");
  app.add_option("--value-layer", options.value_layer, "Values are optimised at the output of this layer");
  app.add_option("--value-batch", options.value_batch, "Requests optimised together; 0: the editor's default");
  app.add_option("--value-requests", options.value_requests, "Requests of the value benchmarks, at most 512")
      ->delimiter(',')
      ->check(CLI::Range(1, 512));
  app.add_flag_callback(
      "--value-graphs", [&options] { options.run.step_launch = LaunchMode::kGraph; },
      "Steps of value optimisation as CUDA graphs, as run.cuda_graphs of a job");
  app.add_option("--value-steps", options.value_steps, "Steps of whole value optimisations");
  app.add_option("--statistics-tokens", options.statistics_tokens, "Tokens of the statistics benchmark");
  app.add_option("--statistics-layers", options.statistics_layers, "Ascending layers of the statistics benchmark")
      ->delimiter(',');
  app.add_option("--solve-sizes", options.solve_sizes, "Widths of the ridge solves")->delimiter(',');
  app.add_option("--solve-requests", options.solve_requests, "Requests of the ridge solves");
  add_file_options(app, options);
}

/// Returns what work may take on each device: "cuda:0=64000000000".
std::string room_of(const Placement& placement) {
  std::vector<std::string> rooms;
  for (const Stage& stage : placement.stages())
    if (const std::optional<int64_t> bytes = placement.room_bytes(stage.device))
      rooms.push_back(cat(stage.device.str(), "=", *bytes));
  return join(rooms);
}

void describe(const Subject& subject, const BenchOptions& options) {
  const ModelConfig& config = subject.model.config();
  benchmark::AddCustomContext("model", options.shape.empty() ? options.model.filename().string() : options.shape);
  benchmark::AddCustomContext("layers", std::to_string(config.n_layers));
  benchmark::AddCustomContext("dtype", at::toString(subject.model.placement().weight_dtype()));
  benchmark::AddCustomContext("placement", subject.model.placement().description());
  benchmark::AddCustomContext("room_bytes", room_of(subject.model.placement()));
  benchmark::AddCustomContext("threads", std::to_string(at::get_num_threads()));
}

int run(int argc, char** argv) {
  set_numerics();
  benchmark::Initialize(&argc, argv);  // takes its own flags out
  BenchOptions options;
  DType dtype = DType::kF32;
  CLI::App app{"Times of lancet's stages. Google Benchmark's flags work too: --benchmark_filter=value_step"};
  add_options(app, options, dtype);
  CLI11_PARSE(app, argc, argv);
  options.run.dtype = dtype;
  stderr_reporter().set_verbosity(Verbosity::kQuiet);
  if (did_file_work(options)) return 0;
  const Subject subject = make_subject(options);
  describe(subject, options);
  register_matmul(subject, options);
  register_forward(subject, options);
  register_values(subject, options);
  register_statistics(subject, options);
  register_solve(subject, options);
  register_downdate();
  register_attention(subject);
  register_launches(subject, options);
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
