// What the command line of lancet_bench says besides Google Benchmark's own flags.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lancet/job/job_config.h"

namespace lancet::bench {

enum class FileTimes { kNone, kLoad, kLoadAndExport };

struct BenchOptions {
  std::filesystem::path model;     ///< a model folder; used unless `shape` is given
  std::string shape;               ///< "llama-3-8b", "hidden=2048,ffn=8192,...": random weights of this shape
  std::filesystem::path requests;  ///< CounterFact records, for a model folder
  std::filesystem::path corpus;    ///< a document per line, for a model folder
  RunOptions run;                  ///< dtype, devices, threads
  int64_t peak_size = 2048;        ///< the matmul peak is measured on [n, n] x [n, n]
  int64_t value_layer = 1;         ///< values are optimised at the output of this layer
  int64_t value_batch = 0;         ///< requests optimised together; 0: the editor's default
  int64_t value_steps = 25;        ///< steps of whole optimisations; the default is MEMIT's published number
  std::vector<int64_t> value_requests{64, 512};  ///< requests of one batch
  int64_t statistics_tokens = 65'536;
  std::vector<int64_t> statistics_layers{0, 1, 2};
  std::vector<int64_t> solve_sizes{768, 4096};  ///< n of the ridge solves
  int64_t solve_requests = 100;                 ///< requests of each
  std::filesystem::path make_checkpoint;        ///< write one of `shape` into this new folder, measure nothing
  int64_t shard_bytes = 500'000'000;            ///< most bytes of a shard of that checkpoint
  FileTimes file_times = FileTimes::kNone;      ///< load, and export, `model` once, measure nothing else
  std::filesystem::path export_to;              ///< a new folder for the export, which stays
};

}  // namespace lancet::bench
