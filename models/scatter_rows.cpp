#include "lancet/models/scatter_rows.h"

#include <torch/types.h>

#include <stdexcept>

#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/runtime/collectives.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

std::string to_bytes(const std::vector<Tensor>& parts, at::ScalarType dtype) {
  if (parts.empty()) return {};
  const Tensor rows = torch::cat(parts).to(Placement::host()).contiguous();
  if (rows.scalar_type() != dtype || rows.dim() != 2)
    throw std::logic_error(cat("rows to gather: expected [rows, X] ", at::toString(dtype), ", got ", rows.sizes(), " ",
                               at::toString(rows.scalar_type())));
  return {static_cast<const char*>(rows.const_data_ptr()), rows.nbytes()};
}

/// Places of the rows that `rank` of `size` sends.
std::vector<int64_t> rows_of(const RowBatches& batches, size_t rank, size_t size) {
  std::vector<int64_t> rows;
  for (size_t i = rank; i < batches.size(); i += size) rows.insert(rows.end(), batches[i].begin(), batches[i].end());
  return rows;
}

Tensor from_bytes(const std::string& bytes, int64_t n_rows, at::ScalarType dtype) {
  // read only; the bytes outlive the tensor
  void* data = const_cast<char*>(bytes.data());
  const auto elements = static_cast<int64_t>(bytes.size() / at::elementSize(dtype));
  return torch::from_blob(data, {n_rows, elements / n_rows}, dtype);
}

}  // namespace

int64_t count_own_rows(const Communicator& communicator, const RowBatches& batches) {
  int64_t rows = 0;
  for (const size_t i : own_pieces(communicator, batches.size())) rows += static_cast<int64_t>(batches[i].size());
  return rows;
}

Tensor gather_rows(Communicator& communicator, const std::string& stage, const RowBatches& batches,
                   const std::vector<Tensor>& parts, const RowKind& kind) {
  if (communicator.size() == 1) return in_place_order(parts, rows_of(batches, 0, 1));
  std::string own;
  communicator.run_collectively(stage, [&] { own = to_bytes(parts, kind.dtype); });
  const std::vector<std::string> all = communicator.gather(own);
  std::vector<Tensor> received;
  std::vector<int64_t> order;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const std::vector<int64_t> rows = rows_of(batches, rank, all.size());
    if (rows.empty()) continue;
    received.push_back(from_bytes(all[rank], static_cast<int64_t>(rows.size()), kind.dtype));
    order.insert(order.end(), rows.begin(), rows.end());
  }
  return in_place_order(received, order).to(kind.device);
}

Tensor scatter_rows(Communicator& communicator, const std::string& stage, const RowBatches& batches,
                    const RowKind& kind, const std::function<Tensor(const std::vector<int64_t>& rows)>& compute) {
  std::vector<Tensor> parts;
  communicator.run_collectively(stage, [&] {
    for (const size_t i : own_pieces(communicator, batches.size())) parts.push_back(compute(batches[i]));
  });
  return gather_rows(communicator, stage, batches, parts, kind);
}

Tensor scatter_rows(Communicator& communicator, const RowWork& work, const RowBatches& batches, const RowKind& kind,
                    const ComputeInTurn& compute) {
  const std::vector<size_t> own = own_pieces(communicator, batches.size());
  std::vector<Tensor> parts(own.size());
  communicator.run_collectively(work.stage, [&] {
    run_in_turns(work.placement, 0, static_cast<int64_t>(own.size()), [&](int64_t i, StageTurn& turn) {
      const torch::NoGradGuard no_grad_in_this_thread;
      parts[static_cast<size_t>(i)] = compute(own[static_cast<size_t>(i)], turn);
    });
  });
  return gather_rows(communicator, work.stage, batches, parts, kind);
}

}  // namespace lancet
