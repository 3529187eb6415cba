// Independent pieces of work by several threads. at::parallel_for is none: its loop is a template that has threads only
// in files compiled with -fopenmp, and ours are not.
#pragma once

#include <cstddef>
#include <functional>

namespace lancet {

/// `work`(0) ... `work`(count - 1), each once, by at most `most_threads` threads (at least one: the caller's), in any
/// order. The first error is thrown once no thread works any more; what has not begun by then is left out.
void for_each_in_parallel(size_t count, size_t most_threads, const std::function<void(size_t)>& work);

}  // namespace lancet
