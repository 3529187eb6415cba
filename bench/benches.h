// The benchmarks by stage; each function registers its own with Google Benchmark. `subject` and `options` outlive the
// run.
#pragma once

#include "bench_options.h"
#include "subject.h"

namespace lancet::bench {

void register_matmul(const Subject& subject, const BenchOptions& options);
void register_forward(const Subject& subject, const BenchOptions& options);
void register_values(const Subject& subject, const BenchOptions& options);
void register_statistics(const Subject& subject, const BenchOptions& options);
void register_solve(const Subject& subject, const BenchOptions& options);
void register_downdate();
void register_attention(const Subject& subject);
/// What a device is asked to do in a value step; nothing on the host.
void register_launches(const Subject& subject, const BenchOptions& options);

}  // namespace lancet::bench
