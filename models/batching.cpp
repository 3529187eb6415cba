#include "lancet/models/batching.h"

#include <torch/types.h>
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "lancet/core/strings.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

int64_t common_prefix(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

std::vector<std::vector<int64_t>> plan_batches(std::span<const int64_t> lengths, BatchLimits limits) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto length = [&](int64_t row) { return lengths[static_cast<size_t>(row)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) < length(b); });
  std::vector<std::vector<int64_t>> batches;
  for (const int64_t row : order) {
    // rows are sorted in ascending order, so this row would be the widest of the batch
    const int64_t rows = batches.empty() ? 0 : static_cast<int64_t>(batches.back().size()) + 1;
    const bool fits = rows > 0 && rows <= limits.rows && rows <= limits.tokens / length(row);
    if (!fits) batches.emplace_back();
    batches.back().push_back(row);
  }
  return batches;
}

int64_t longest_usual_text(const ModelConfig& config) {
  const bool differs = config.rope.scaling == RopeConfig::Scaling::kLongRope;
  return differs ? config.rope.original_max_positions : std::numeric_limits<int64_t>::max();
}

std::vector<std::vector<int64_t>> plan_packs(std::span<const std::vector<TokenId>> documents, int64_t max_tokens,
                                             int64_t apart) {
  const auto document = [&](int64_t index) -> const std::vector<TokenId>& {
    return documents[static_cast<size_t>(index)];
  };
  std::vector<int64_t> order(documents.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return document(a) < document(b); });
  const auto is_long = [&](int64_t index) { return std::ssize(document(index)) > apart; };
  std::stable_partition(order.begin(), order.end(), [&](int64_t index) { return !is_long(index); });
  std::vector<std::vector<int64_t>> packs;
  int64_t tokens = 0, places = 0;  // of the last pack
  for (const int64_t index : order) {
    const int64_t length = static_cast<int64_t>(document(index).size());
    // documents are sorted lexicographically, so of all documents of the pack the previous one shares the longest
    // beginning
    const int64_t fresh =
        packs.empty() ? length : length - common_prefix(document(packs.back().back()), document(index));
    const bool fits_kind = !packs.empty() && is_long(packs.back().back()) == is_long(index);
    if (!fits_kind || tokens + fresh > max_tokens || places + length > 2 * max_tokens) {
      packs.emplace_back();
      tokens = length;
      places = length;
    } else {
      tokens += fresh;
      places += length;
    }
    packs.back().push_back(index);
  }
  for (std::vector<int64_t>& pack : packs)
    std::stable_sort(pack.begin(), pack.end(),
                     [&](int64_t a, int64_t b) { return document(a).size() < document(b).size(); });
  return packs;
}

Tensor in_place_order(const std::vector<Tensor>& parts, const std::vector<int64_t>& order) {
  const Tensor rows = torch::cat(parts);
  return rows.index_select(0, torch::tensor(order, torch::kLong).argsort().to(rows.device()));
}

PackedDocumentBatch::PackedDocumentBatch(const std::vector<std::span<const TokenId>>& documents)
    : batch(make_packed_batch(documents)) {
  const Tensor& places_P = batch.sequence.places_P;  // undefined: every token has its own place
  int64_t place = 0;
  for (const std::span<const TokenId> document : documents) {
    std::vector<int64_t>& own = tokens.emplace_back();
    for (size_t t = 0; t < document.size(); ++t, ++place)
      own.push_back(places_P.defined() ? places_P.const_data_ptr<int64_t>()[place] : place);
  }
}

TargetPlaces target_places(std::span<const RowTarget> rows) {
  TargetPlaces places;
  int64_t position = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const RowTarget& row = rows[r];
    std::vector<int64_t>& outputs = places.outputs.emplace_back();
    if (row.also) places.also.push_back(position);
    if (row.also && (row.target.empty() || *row.also < row.first_place)) {
      outputs.push_back(*row.also);
      ++position;
    }
    for (size_t j = 0; j < row.target.size(); ++j) {
      outputs.push_back(row.first_place + static_cast<int64_t>(j));
      places.positions.push_back(position++);
      places.ids.push_back(row.target[j]);
      places.rows.push_back(static_cast<int64_t>(r));
    }
  }
  return places;
}

namespace {

std::string to_bytes(const std::vector<Tensor>& parts, at::ScalarType dtype) {
  if (parts.empty()) return {};
  const Tensor rows = torch::cat(parts).to(Placement::host()).contiguous();
  if (rows.scalar_type() != dtype || rows.dim() != 2)
    throw std::logic_error(cat("rows to gather: expected [rows, X] ", at::toString(dtype), ", got ", rows.sizes(), " ",
                               at::toString(rows.scalar_type())));
  return {static_cast<const char*>(rows.const_data_ptr()), rows.nbytes()};
}

/// Returns the indices of the rows that `rank` of `size` sends.
std::vector<int64_t> rows_of(const RowBatches& batches, size_t rank, size_t size) {
  std::vector<int64_t> rows;
  for (size_t i = rank; i < batches.size(); i += size) rows.insert(rows.end(), batches[i].begin(), batches[i].end());
  return rows;
}

Tensor from_bytes(const std::string& bytes, int64_t n_rows, at::ScalarType dtype) {
  // the tensor is only read, and the bytes outlive it
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
