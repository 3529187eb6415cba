// Results whose rows are computed batch by batch, spread over ranks: batch i by the rank whose piece it is. Batches are
// the same on every rank, so a row is computed in the same company whatever the number of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lancet/runtime/communicator.h"
#include "lancet/runtime/stage_turns.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Rows of a result, cut into batches.
using RowBatches = std::vector<std::vector<int64_t>>;

/// What the whole is made of, known also to a rank that computes none of it.
struct RowKind {
  at::ScalarType dtype;
  at::Device device;
};

/// Rows of the batches that are this rank's.
int64_t count_own_rows(const Communicator& communicator, const RowBatches& batches);

/// Collective. `parts`: of this rank's batches, in their order, [rows, X] each of `kind`. Returns all rows in their
/// places, [N, X] on `kind.device`, on every rank, bit by bit.
Tensor gather_rows(Communicator& communicator, const std::string& stage, const RowBatches& batches,
                   const std::vector<Tensor>& parts, const RowKind& kind);

/// Collective. gather_rows of `compute(rows)` for each batch; `compute` is this rank's work of the stage.
Tensor scatter_rows(Communicator& communicator, const std::string& stage, const RowBatches& batches,
                    const RowKind& kind, const std::function<Tensor(const std::vector<int64_t>& rows)>& compute);

/// What a batch's forward pass is given: its place among the batches, and its turn at the model's stages
/// (SequenceInfo::turn).
using ComputeInTurn = std::function<Tensor(size_t batch, StageTurn& turn)>;

/// What forward passes of batches run on, and the stage of the job whose work they are.
struct RowWork {
  const Placement& placement;
  std::string stage;
};

/// Collective. The same, with as many of this rank's batches under way as the placement says, each on another of its
/// stages.
Tensor scatter_rows(Communicator& communicator, const RowWork& work, const RowBatches& batches, const RowKind& kind,
                    const ComputeInTurn& compute);

}  // namespace lancet
