// A separate file: at::parallel_for is a template that uses threads only where it is compiled with OpenMP.
#include <ATen/Parallel.h>

#include <algorithm>

#include "host_dispatch.h"

namespace lancet {

void parallel_rows(int64_t rows, int64_t row_cost, const std::function<void(RowRange)>& run) {
  constexpr int64_t kGrain = 16384;  // least number of operations for which a thread is used
  at::parallel_for(0, rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, row_cost)),
                   [&](int64_t begin, int64_t end) {
                     run(RowRange{begin, end});
                   });
}

}  // namespace lancet
