// How much memory value optimisation takes on each stage.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lancet/models/batching.h"
#include "lancet/models/memory.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/training/values.h"

namespace lancet {

/// Returns the number of groups of at most `contexts_per_step` (0: all) into which a request's contexts are divided; a
/// step runs one group.
int64_t value_groups(int64_t n_contexts, int64_t contexts_per_step);
/// Returns the contexts of group `group`.
std::vector<int64_t> contexts_of_group(int64_t group, int64_t n_groups, int64_t n_contexts);

/// Returns which of `contexts` (indices into the request's rows) equals the drift row up to its lookup token. The
/// model's prediction there is the same, so the drift row need not be run. nullopt: none.
std::optional<int64_t> row_with_drift(const PreparedRequest& request, std::span<const int64_t> contexts);

/// The largest sizes among some requests, and mean row lengths.
struct ValueShape {
  int64_t contexts = 1;       ///< rows per request in a step
  int64_t groups = 1;         ///< number of groups of contexts; a step runs one group
  int64_t row_tokens = 0;     ///< tokens of a context with the target spliced after it
  int64_t prefix_tokens = 0;  ///< tokens before the lookup token; they are run once
  int64_t suffix_tokens = 0;  ///< tokens from the lookup token on; they are run in every step
  int64_t target_tokens = 0;
  int64_t drift_rows = 0;   ///< 1: one of the requests needs its drift row (of one token) in every step
  int64_t kept_rows = 0;    ///< prompts that a request keeps (PreparedRequest::kept)
  int64_t kept_tokens = 0;  ///< tokens of all of them from the lookup tokens on
  /// Mean number of tokens from the lookup token on, rounded up; 0: all rows are as long as the longest.
  int64_t mean_suffix_tokens = 0;
  int64_t distinct_tokens = 0;  ///< tokens of one request's rows, with shared beginnings counted once; 0: unknown
  int64_t distinct_prefix_tokens = 0;      ///< the same, for tokens before the lookup tokens
  int64_t all_distinct_tokens = 0;         ///< the same, for all requests' rows together
  int64_t all_distinct_prefix_tokens = 0;  ///< the same, for tokens before the lookup tokens of all rows

  /// Returns the rows of a step per request.
  int64_t step_rows() const { return contexts + drift_rows + kept_rows; }
  /// Returns the mean number of tokens of one request in a step.
  int64_t step_tokens() const;
  /// Return the tokens of all rows of `requests` requests that the set-up runs, and those before the lookup tokens,
  /// over all groups.
  int64_t packed_tokens(int64_t requests) const;
  int64_t packed_prefix_tokens(int64_t requests) const;
  /// Returns the most tokens of a step of a batch of `requests`, for requests that plan_value_batches() divides.
  int64_t batch_tokens(int64_t requests) const;
};

ValueShape value_shape(std::span<const PreparedRequest> requests);

/// Returns the shape if the contexts of the single group are divided into value_groups().
ValueShape in_groups(ValueShape shape, int64_t contexts_per_step);

struct ValueWork {
  const ModelConfig& config;
  at::ScalarType dtype;
  int64_t layer;  ///< the edited layer; steps run the layers above it
  ValueShape shape;
};

struct ValueBytes {
  int64_t activations = 0;  ///< activations that are kept for the gradient, and the work space
  int64_t prefix = 0;       ///< cached keys and values
};

/// Returns the peak bytes of one batch of `requests` on a stage.
ValueBytes value_bytes(const ValueWork& work, const Stage& stage, int64_t requests);

/// Returns the most tokens of one step of a batch. `share_tokens`: the tokens of each batch in flight if all tokens are
/// divided among them. On the host it is the share, but from 512 to 1024, because the activations of more tokens do not
/// fit the caches. On accelerators it is 16384, or as much as the batches in flight have memory for on every stage,
/// rounded down to a power of two; with several batches in flight it is at most the share.
int64_t value_step_tokens(const ValueWork& work, const Placement& placement, int64_t share_tokens);

// Chooses which requests are optimised together.

/// Divides the indices of `tokens` into `n_batches` batches, dealt in turns, the largest first, so that sums and sizes
/// are nearly equal. Each batch is ascending; there are fewer batches if there are fewer indices.
RowBatches deal_out(std::span<const int64_t> tokens, int64_t n_batches);

/// Collective. Divides the requests evenly into batches of indices; root's free memory decides for all ranks. A batch
/// has at most options.batch requests. With 0 it has as many as keep its step within value_step_tokens(), or fewer on
/// the host, so that every thread runs equally many batches.
RowBatches plan_value_batches(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                              const ValueOptions& options, Communicator& communicator);

/// Returns the requests of the `n_batches` largest of `batches`: memory must suffice for them when that many batches
/// are in flight.
std::vector<int64_t> heaviest_requests(std::span<const PreparedRequest> requests, const ValueOptions& options,
                                       RowBatches batches, int64_t n_batches);

}  // namespace lancet
