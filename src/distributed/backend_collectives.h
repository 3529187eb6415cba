// Collectives on one c10d backend (Gloo or NCCL), made from the few operations that both have. Tensors are where the
// backend works.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Adds up `tensor` (of any shape) over the ranks in place, in the order of ranks, with the same bits on all ranks.
/// Every rank adds one part of each piece and sends it to all, so each sends about twice the tensor, whatever the
/// number of ranks is.
void sum_in_rank_order(c10d::Backend& backend, Tensor& tensor, std::chrono::milliseconds timeout);

/// Sends `bytes` [n] u8 of rank 0 to all, in place.
void broadcast_bytes(c10d::Backend& backend, Tensor& bytes, std::chrono::milliseconds timeout);

/// Returns [size, n]: every rank's `part` [n], by rank.
Tensor gather_equal(c10d::Backend& backend, const Tensor& part, std::chrono::milliseconds timeout);

}  // namespace lancet
