#include "backend_collectives.h"

#include <torch/types.h>

#include <algorithm>
#include <vector>

namespace lancet {
namespace {

/// Bytes for each rank and buffer: the memory of a collective in addition to its tensor.
constexpr int64_t kPieceBytes = int64_t{64} << 20;

void all_to_all(c10d::Backend& backend, Tensor& received, Tensor& sent, std::chrono::milliseconds timeout) {
  c10d::AllToAllOptions options;
  options.timeout = timeout;
  std::vector<int64_t> equal_parts;  // empty: as many equal parts as ranks
  backend.alltoall_base(received, sent, equal_parts, equal_parts, options)->wait();
}

}  // namespace

Tensor gather_equal(c10d::Backend& backend, const Tensor& part, std::chrono::milliseconds timeout) {
  Tensor all = torch::empty({backend.getSize(), part.numel()}, part.options());
  c10d::AllgatherOptions options;
  options.timeout = timeout;
  std::vector<std::vector<Tensor>> outputs{all.unbind(0)};
  std::vector<Tensor> inputs{part};
  backend.allgather(outputs, inputs, options)->wait();
  return all;
}

void sum_in_rank_order(c10d::Backend& backend, Tensor& tensor, std::chrono::milliseconds timeout) {
  const torch::NoGradGuard no_grad;
  const int64_t size = backend.getSize();
  const Tensor whole = tensor.contiguous();
  const Tensor flat = whole.view(-1);
  // number of elements in a rank's part of a piece
  const int64_t most = std::max<int64_t>(1, kPieceBytes / flat.element_size() / size);
  for (int64_t begin = 0; begin < flat.numel(); begin += size * most) {
    const int64_t length = std::min(size * most, flat.numel() - begin);
    const int64_t part = (length + size - 1) / size;
    Tensor sent = torch::zeros({size, part}, flat.options());
    sent.view(-1).slice(0, 0, length).copy_(flat.slice(0, begin, begin + length));
    Tensor received = torch::empty_like(sent);
    all_to_all(backend, received, sent, timeout);
    Tensor total = received[0].clone();
    for (int64_t rank = 1; rank < size; ++rank) total += received[rank];
    flat.slice(0, begin, begin + length).copy_(gather_equal(backend, total, timeout).view(-1).slice(0, 0, length));
  }
  if (!tensor.is_contiguous()) tensor.copy_(whole);
}

void broadcast_bytes(c10d::Backend& backend, Tensor& bytes, std::chrono::milliseconds timeout) {
  c10d::BroadcastOptions options;
  options.timeout = timeout;
  for (int64_t begin = 0; begin < bytes.numel(); begin += kPieceBytes) {
    std::vector<Tensor> piece{bytes.slice(0, begin, std::min(bytes.numel(), begin + kPieceBytes))};
    backend.broadcast(piece, options)->wait();
  }
}

}  // namespace lancet
