// Runs independent pieces of work in several threads. at::parallel_for cannot do this: its loop is a template that uses
// threads only in files compiled with -fopenmp, and lancet's files are compiled without it.
#pragma once

#include <cstddef>
#include <functional>

namespace lancet {

/// Calls `work`(0) ... `work`(count - 1), each once, in any order, on at most `most_threads` threads (at least one: the
/// caller's). After an error no further piece begins. The first error is thrown when all threads have ended.
void for_each_in_parallel(size_t count, size_t most_threads, const std::function<void(size_t)>& work);

}  // namespace lancet
