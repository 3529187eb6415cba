// One load of a checkpoint, and one export, timed as bench/compare_loading.py times transformers'.
#pragma once

#include "bench_options.h"

namespace lancet::bench {

/// Loads `options.model`, gives it back and loads it again, which is timed; sums every weight's bytes, exports with the
/// first five layers' down projections written from memory (unchanged, so that the copy equals the base) into
/// `options.export_to`, a new folder; prints a line of JSON: seconds, bytes, the sum, growth of the process's anonymous
/// memory. Throws: as loading and exporting do.
void run_file_times(const BenchOptions& options);

}  // namespace lancet::bench
