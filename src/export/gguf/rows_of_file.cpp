#include "rows_of_file.h"

#include <torch/types.h>

#include "lancet/gguf/row_order.h"

namespace lancet {

Tensor rows_of_file(const Tensor& rows, GgufChange change, const GgufHeads& heads) {
  const std::vector<int64_t> order = file_rows(change, rows.size(0), heads);
  if (order.empty()) return rows;
  std::vector<int64_t> own_rows(order.size());
  for (size_t row = 0; row < order.size(); ++row) own_rows[static_cast<size_t>(order[row])] = static_cast<int64_t>(row);
  return rows.index_select(0, torch::tensor(own_rows, at::kLong));
}

}  // namespace lancet
