#include "rows_of_file.h"

#include <torch/types.h>

namespace lancet {

Tensor rows_of_file(const Tensor& rows, GgufChange change, int64_t heads) {
  if (change != GgufChange::kHeadRows && change != GgufChange::kKvHeadRows) return rows;
  return rows.unflatten(0, {heads, 2, -1}).transpose(1, 2).flatten(0, 2).contiguous();
}

}  // namespace lancet
