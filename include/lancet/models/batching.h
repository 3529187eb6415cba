// Rows of different lengths in batches that waste little padding, documents in one row, and batches that are spread
// over ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "lancet/models/model_config.h"
#include "lancet/models/sequence_info.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/host_workers.h"
#include "lancet/runtime/tensor.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// The most that a batch holds: padded tokens (but at least one row), rows.
struct BatchLimits {
  int64_t tokens = std::numeric_limits<int64_t>::max();
  int64_t rows = std::numeric_limits<int64_t>::max();
};

/// Indices of `lengths` (each at least 1) sorted by length (stable) and cut into batches within the limits.
std::vector<std::vector<int64_t>> plan_batches(std::span<const int64_t> lengths, BatchLimits limits);

/// Indices of `documents` cut into packed rows (make_packed_batch) of at most `max_tokens` tokens, and of at most twice
/// as many places, or one document. Documents that begin alike share a row; in a row they are sorted by length. Depends
/// on the documents alone. No row holds both documents of more than `apart` tokens and others.
std::vector<std::vector<int64_t>> plan_packs(std::span<const std::vector<TokenId>> documents, int64_t max_tokens,
                                             int64_t apart = std::numeric_limits<int64_t>::max());

/// The tokens beyond which a text is turned by other frequencies (LongRoPE), which a packed row has one kind of; else
/// no number.
int64_t longest_usual_text(const ModelConfig& config);

/// Puts rows that were computed in the order of the batches back in their places: row i of the batches' results, one
/// after another, belongs to place order[i].
Tensor in_place_order(const std::vector<Tensor>& parts, const std::vector<int64_t>& order);

/// Padded tokens of one forward pass without gradients: enough to fill the matrix units, small beside the weights.
inline constexpr int64_t kForwardTokens = 8192;

// Token sequences in one packed row, and where each of their tokens stands in it.

struct PackedDocumentBatch {
  TokenBatch batch;
  std::vector<std::vector<int64_t>> tokens;  ///< tokens of the row that each document is, first to last

  /// Packs documents as make_packed_batch() does.
  explicit PackedDocumentBatch(const std::vector<std::span<const TokenId>>& documents);

  int64_t size() const { return batch.ids_BT.size(1); }
};

// Places at which rows with a target spliced after a prompt predict its tokens.

/// A row's target and the place in the row that predicts its first token: the prompt's last one.
struct RowTarget {
  int64_t first_place = 0;
  std::span<const TokenId> target;  ///< may be empty where the beginning is read
  bool reads_beginning = false;     ///< the output at place 0 is wanted too
};

/// Labels of rows, one by one: which of the wanted outputs predicts it, its id, its row.
struct TargetPlaces {
  std::vector<std::vector<int64_t>> outputs;  ///< places of each row that are wanted, ascending
  std::vector<int64_t> positions;             ///< each label's place among the outputs of all rows, row after row
  std::vector<int64_t> ids;
  std::vector<int64_t> rows;
  std::vector<int64_t> beginnings;  ///< the position of place 0, for each row that reads it, in their order
};

/// Every row has a target or reads its beginning.
TargetPlaces target_places(std::span<const RowTarget> rows);

// Results whose rows are computed batch by batch, spread over ranks: batch i by the rank whose piece it is. Batches are
// the same on every rank, so a row is computed in the same company whatever the number of ranks.

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
