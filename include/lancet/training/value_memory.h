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

/// Returns in how many groups of at most `contexts_per_step` (0: all) a request's contexts are dealt out; a step runs
/// one.
int64_t value_groups(int64_t n_contexts, int64_t contexts_per_step);
/// Returns the contexts that group `group` of them has.
std::vector<int64_t> contexts_of_group(int64_t group, int64_t n_groups, int64_t n_contexts);

/// Which of `contexts` (indices into the request's rows) begins as the drift row, up to its lookup token: there the
/// model says the same, and the drift row need not be run. nullopt: none.
std::optional<int64_t> row_with_drift(const PreparedRequest& request, std::span<const int64_t> contexts);

/// The longest of everything among some requests, and how long rows are in the mean.
struct ValueShape {
  int64_t contexts = 1;       ///< rows of a request in a step
  int64_t groups = 1;         ///< groups of contexts, of which a step runs one
  int64_t row_tokens = 0;     ///< length of a context with the target spliced after it
  int64_t prefix_tokens = 0;  ///< tokens before the lookup token: run once
  int64_t suffix_tokens = 0;  ///< tokens from the lookup token on: run in every step
  int64_t target_tokens = 0;
  int64_t drift_rows = 0;          ///< 1: one of the requests needs its drift row in every step: one token
  int64_t mean_suffix_tokens = 0;  ///< mean of the tokens from the lookup token on, rounded up; 0: all are the longest
  int64_t distinct_tokens = 0;     ///< tokens of one request's rows, what they begin with alike once; 0: not known
  int64_t distinct_prefix_tokens = 0;      ///< likewise, of the tokens before the lookup tokens
  int64_t all_distinct_tokens = 0;         ///< likewise, of all requests' rows together
  int64_t all_distinct_prefix_tokens = 0;  ///< likewise

  /// Rows of a step, per request.
  int64_t step_rows() const { return contexts + drift_rows; }
  /// Tokens of a step of a request in the mean.
  int64_t step_tokens() const;
  /// Tokens of so many requests' rows that set-up runs, and those before the lookup tokens, of all groups.
  int64_t packed_tokens(int64_t requests) const;
  int64_t packed_prefix_tokens(int64_t requests) const;
  /// Tokens of a step of a batch at its fullest, whose requests are dealt out by plan_value_batches().
  int64_t batch_tokens(int64_t requests) const;
};

ValueShape value_shape(std::span<const PreparedRequest> requests);

/// Returns the shape with the contexts of one group dealt out in value_groups().
ValueShape in_groups(ValueShape shape, int64_t contexts_per_step);

struct ValueWork {
  const ModelConfig& config;
  at::ScalarType dtype;
  int64_t layer;  ///< the edited one: steps run the layers above it
  ValueShape shape;
};

struct ValueBytes {
  int64_t activations = 0;  ///< kept for the gradient, and what is at work
  int64_t prefix = 0;       ///< cached keys and values
};

/// What one batch of `requests` holds on a stage at its fullest.
ValueBytes value_bytes(const ValueWork& work, const Stage& stage, int64_t requests);

/// Most tokens of one step of a batch; `share_tokens`: what each batch under way gets when all tokens are dealt out at
/// once. On the host the share, from 512 up to 1024: activations of more fall out of the caches. On accelerators 16384,
/// or what the batches under way have room for on every stage, rounded down to a power of two; with several batches
/// under way at most the share.
int64_t value_step_tokens(const ValueWork& work, const Placement& placement, int64_t share_tokens);

// Which requests are optimised together.

/// Indices of `tokens` in so many batches, of as nearly equal sums and sizes as dealing them out in turns gives, the
/// largest first. Each ascending; fewer where there are fewer indices.
RowBatches deal_out(std::span<const int64_t> tokens, int64_t n_batches);

/// Collective: how much memory is free is root's. Batches as indices, dealt out evenly. Each holds at most
/// options.batch requests; 0: as many as keep its step within value_step_tokens(), on the host
/// perhaps fewer, so that every thread runs equally many batches.
RowBatches plan_value_batches(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                              const ValueOptions& options, Communicator& communicator);

/// The requests of the `n_batches` largest of `batches`: what memory must suffice for when as many are under way.
std::vector<int64_t> heaviest_requests(std::span<const PreparedRequest> requests, const ValueOptions& options,
                                       RowBatches batches, int64_t n_batches);

}  // namespace lancet
