// Three ways to batch token sequences: rows of different lengths with little padding, several documents in one packed
// row, and batches that are spread over ranks.
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

/// The limits of a batch: padded tokens and rows. A batch may exceed the token limit only when it has a single row.
struct BatchLimits {
  int64_t tokens = std::numeric_limits<int64_t>::max();
  int64_t rows = std::numeric_limits<int64_t>::max();
};

/// Sorts the indices of `lengths` (each at least 1) by length (stable) and cuts them into batches within the limits.
std::vector<std::vector<int64_t>> plan_batches(std::span<const int64_t> lengths, BatchLimits limits);

/// Divides the indices of `documents` into packed rows (make_packed_batch). A row has at most `max_tokens` tokens and
/// at most twice as many places, or it has a single document. Documents with the same beginning share a row; within a
/// row documents are sorted by length. A row never mixes documents of more than `apart` tokens with shorter ones. The
/// result depends on the documents only.
std::vector<std::vector<int64_t>> plan_packs(std::span<const std::vector<TokenId>> documents, int64_t max_tokens,
                                             int64_t apart = std::numeric_limits<int64_t>::max());

/// Returns the number of tokens beyond which a text uses other rotary frequencies (LongRoPE); the largest int64 where
/// there is none. A packed row can only have one kind of frequencies.
int64_t longest_usual_text(const ModelConfig& config);

/// Puts rows back in their places after they were computed in the order of the batches: row i of the concatenated
/// results belongs to place order[i].
Tensor in_place_order(const std::vector<Tensor>& parts, const std::vector<int64_t>& order);

/// Padded tokens of one forward pass without gradients: enough to fill the matrix units, with activations that are
/// small compared to the weights.
inline constexpr int64_t kForwardTokens = 8192;

// Token sequences in one packed row, and the place of each of their tokens in it.

struct PackedDocumentBatch {
  TokenBatch batch;
  std::vector<std::vector<int64_t>> tokens;  ///< each document's tokens as indices into the row, first to last

  /// Packs the documents with make_packed_batch().
  explicit PackedDocumentBatch(const std::vector<std::span<const TokenId>>& documents);

  int64_t size() const { return batch.ids_BT.size(1); }
};

// The places at which a row predicts the tokens of the target that follows its prompt.

/// A row's target, and the place in the row that predicts its first token. That place is the prompt's last token.
struct RowTarget {
  int64_t first_place = 0;
  std::span<const TokenId> target;  ///< may be empty if another output is read
  std::optional<int64_t> also;      ///< the output at this place is needed too: at most first_place, unless the target
                                    ///< is empty
};

/// All labels of the rows: which output predicts each label, its token id, and its row.
struct TargetPlaces {
  std::vector<std::vector<int64_t>> outputs;  ///< each row's places whose outputs are needed, ascending
  std::vector<int64_t> positions;             ///< index of each label among the outputs of all rows, row after row
  std::vector<int64_t> ids;
  std::vector<int64_t> rows;
  /// Index of the output at RowTarget::also for each row that reads it, in the order of the rows.
  std::vector<int64_t> also;
};

/// Returns the places of the targets. Every row must have a target or read another output.
TargetPlaces target_places(std::span<const RowTarget> rows);

// Results whose rows are computed batch by batch and spread over ranks: batch i is computed by the rank that owns piece
// i. The batches are the same on every rank, so a row is always computed together with the same rows, whatever the
// number of ranks.

/// Rows of a result, cut into batches.
using RowBatches = std::vector<std::vector<int64_t>>;

/// Type and device of the whole result, which a rank needs even if it computes no part of it.
struct RowKind {
  at::ScalarType dtype;
  at::Device device;
};

/// Counts the rows of this rank's batches.
int64_t count_own_rows(const Communicator& communicator, const RowBatches& batches);

/// Collective. Returns all rows in their places, [N, X] on `kind.device`, bitwise equal on every rank. `parts`: the
/// results of this rank's batches, in their order, each [rows, X] of `kind`.
Tensor gather_rows(Communicator& communicator, const std::string& stage, const RowBatches& batches,
                   const std::vector<Tensor>& parts, const RowKind& kind);

/// Collective. Calls `compute(rows)` for each of this rank's batches and gathers the results with gather_rows().
/// `compute` is this rank's work in the stage.
Tensor scatter_rows(Communicator& communicator, const std::string& stage, const RowBatches& batches,
                    const RowKind& kind, const std::function<Tensor(const std::vector<int64_t>& rows)>& compute);

/// Computes one batch. It receives the index of the batch and its turn at the model's stages (SequenceInfo::turn).
using ComputeInTurn = std::function<Tensor(size_t batch, StageTurn& turn)>;

/// The placement on which forward passes of batches run, and the job's stage that they belong to.
struct RowWork {
  const Placement& placement;
  std::string stage;
};

/// Collective. Computes and gathers rows as above, with several of this rank's batches in flight at a time, each on
/// another model stage. The placement says how many.
Tensor scatter_rows(Communicator& communicator, const RowWork& work, const RowBatches& batches, const RowKind& kind,
                    const ComputeInTurn& compute);

}  // namespace lancet
