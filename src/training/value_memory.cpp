#include "lancet/training/value_memory.h"

#include <torch/types.h>
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <vector>

#include "lancet/kernels/linear.h"
#include "lancet/models/batching.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/host_workers.h"
#include "lancet/runtime/memory.h"

namespace lancet {
namespace {

constexpr int64_t kLeastHostTokens = 512, kMostHostTokens = 1024;
constexpr int64_t kAcceleratorTokens = 16384;

/// The rows that a batch runs together.
struct Rows {
  int64_t count = 0;
  int64_t prefix_tokens = 0;
  int64_t step_tokens = 0;  ///< number of tokens that a step runs, in all rows
  int64_t suffix_tokens = 0;
};

int64_t element_bytes(const ValueWork& work) { return static_cast<int64_t>(c10::elementSize(work.dtype)); }

/// Returns the bytes that the backward pass needs for one layer above the edited one.
int64_t kept_bytes(const ValueWork& work, const Stage& stage, const Rows& rows) {
  const ModelConfig& config = work.config;
  const int64_t element = element_bytes(work), tokens = rows.step_tokens;
  const int64_t keys = rows.prefix_tokens + rows.suffix_tokens;
  const bool fused = !holds_scores(config, stage.device, work.dtype);
  // The inputs of both norms (precise), gate, up, the activated gate, and the query; with experts also each expert's
  // input, key and output.
  const int64_t d_active = config.active_ffn();
  const int64_t of_experts = config.experts.chosen * (2 * config.d_model + config.experts.d_ffn);
  const int64_t per_token = 2 * std::max<int64_t>(element, 4) * config.d_model +
                            element * (3 * d_active + of_experts + (fused ? 2 : 3) * query_size(config));
  // Keys and values with the prefix as one tensor; without a fused kernel there is also a scaled copy.
  const int64_t of_keys = rows.count * key_value_bytes(config, work.dtype, keys) * (fused ? 2 : 3) / 2;
  const int64_t of_scores =
      element * config.n_heads * tokens * keys;  // weights, or the mask in the form of a fused kernel
  const int64_t shared = tokens * element * 3 * config.experts.shared;
  const int64_t mixer = mixer_bytes(config, work.dtype, tokens, rows.suffix_tokens).kept +
                        rows.count * mixer_state_bytes(config, work.dtype);
  return tokens * per_token + std::max(of_keys + of_scores, mixer) + shared;
}

/// Returns the bytes of one layer's work, forward or backward, in addition to what is kept.
int64_t working_bytes(const ValueWork& work, const Stage& stage, const Rows& rows) {
  const ModelConfig& config = work.config;
  const int64_t keys = rows.prefix_tokens + rows.suffix_tokens, tokens = rows.step_tokens;
  return layer_pass_bytes(config, {work.dtype, tokens, keys}) + layer_product_bytes(config, stage, work.dtype, tokens) +
         rows.count * (2 * key_value_bytes(config, work.dtype, keys) + 3 * mixer_state_bytes(config, work.dtype)) +
         mixer_bytes(config, work.dtype, rows.count * rows.prefix_tokens, rows.prefix_tokens).working;
}

int64_t setup_bytes(const ValueWork& work, const Stage& stage, int64_t requests) {
  const int64_t scores = holds_scores(work.config, stage.device, work.dtype) ? work.shape.row_tokens : 0;
  // rows are packed: each pack has at most this many tokens, or one row
  const int64_t tokens = std::min(work.shape.packed_tokens(requests), std::max(kForwardTokens, work.shape.row_tokens));
  const int64_t hidden = tokens * work.config.d_model * element_bytes(work);
  return layer_pass_bytes(work.config, {work.dtype, tokens, scores}) +
         layer_product_bytes(work.config, stage, work.dtype, tokens) + (stage.begin <= work.layer ? hidden : 0);
}

/// Returns the bytes of log-probabilities, and of their gradients at the beginning of the backward pass.
int64_t loss_bytes(const ValueWork& work, const Stage& stage, int64_t labels, int64_t drifts) {
  const LinearSize head{labels + drifts, work.config.d_model, work.config.vocab_size};
  const int64_t products = std::max(linear_scratch_bytes(head, work.dtype, stage.device),
                                    linear_gradient_scratch_bytes(head, work.dtype, stage.device));
  const int64_t precise = precise_bytes(work.dtype), copies = element_bytes(work) < precise ? element_bytes(work) : 0;
  return products + work.config.vocab_size * (labels * (3 * precise + copies) + drifts * (6 * precise + copies));
}

}  // namespace

int64_t value_groups(int64_t n_contexts, int64_t contexts_per_step) {
  if (contexts_per_step == 0) return 1;
  return (n_contexts + contexts_per_step - 1) / contexts_per_step;
}

std::vector<int64_t> contexts_of_group(int64_t group, int64_t n_groups, int64_t n_contexts) {
  std::vector<int64_t> contexts;
  for (int64_t context = group; context < n_contexts; context += n_groups) contexts.push_back(context);
  return contexts;
}

std::optional<int64_t> row_with_drift(const PreparedRequest& request, std::span<const int64_t> contexts) {
  const LocatedPrompt& drift = request.drift;
  for (size_t c = 0; c < contexts.size(); ++c) {
    const LocatedPrompt& row = request.rows[static_cast<size_t>(contexts[c])];
    if (row.lookup == drift.lookup && std::equal(row.ids.begin(), row.ids.begin() + row.lookup + 1, drift.ids.begin()))
      return static_cast<int64_t>(c);
  }
  return std::nullopt;
}

int64_t ValueShape::packed_tokens(int64_t requests) const {
  if (distinct_tokens == 0) return requests * step_rows() * row_tokens;
  return std::min(requests * distinct_tokens, all_distinct_tokens);
}

int64_t ValueShape::packed_prefix_tokens(int64_t requests) const {
  if (distinct_prefix_tokens == 0) return requests * groups * step_rows() * prefix_tokens;
  // each group computes its prefixes anew, at most with all of its drift rows
  return std::min(requests * distinct_prefix_tokens, all_distinct_prefix_tokens) +
         requests * (groups - 1) * prefix_tokens;
}

int64_t ValueShape::step_tokens() const {
  return contexts * (mean_suffix_tokens > 0 ? mean_suffix_tokens : suffix_tokens) + drift_rows + kept_tokens;
}

int64_t ValueShape::batch_tokens(int64_t requests) const {
  return contexts * suffix_tokens + drift_rows + kept_tokens + (requests - 1) * step_tokens();
}

ValueShape in_groups(ValueShape shape, int64_t contexts_per_step) {
  shape.groups = value_groups(shape.contexts, contexts_per_step);
  if (shape.groups > 1) shape.drift_rows = 1;  // no row is in all groups
  shape.contexts = (shape.contexts + shape.groups - 1) / shape.groups;
  return shape;
}

namespace {

int64_t count_distinct(std::vector<std::span<const TokenId>> documents) {
  std::ranges::sort(documents, [](const auto& a, const auto& b) { return std::ranges::lexicographical_compare(a, b); });
  int64_t tokens = 0;
  std::span<const TokenId> before;
  for (const std::span<const TokenId> document : documents) {
    tokens += document.end() - std::ranges::mismatch(before, document).in2;
    before = document;
  }
  return tokens;
}

/// Texts of requests' rows: whole, and up to their lookup tokens.
struct RowTexts {
  std::vector<std::span<const TokenId>> whole = {}, before = {};

  void add(const LocatedPrompt& row, size_t tokens) {
    whole.push_back(std::span(row.ids).first(tokens));
    before.push_back(std::span(row.ids).first(static_cast<size_t>(row.lookup)));
  }
  /// Adds a request's rows, with its drift row.
  void add(const PreparedRequest& request) {
    for (const LocatedPrompt& row : request.rows) add(row, row.ids.size());
    add(request.drift, static_cast<size_t>(request.drift.lookup) + 1);
    for (const LocatedPrompt& prompt : request.kept) add(prompt, prompt.ids.size());
  }
};

void note_distinct(std::span<const PreparedRequest> requests, ValueShape& shape) {
  RowTexts all;
  for (const PreparedRequest& request : requests) {
    RowTexts own;
    own.add(request);
    all.add(request);
    shape.distinct_tokens = std::max(shape.distinct_tokens, count_distinct(std::move(own.whole)));
    shape.distinct_prefix_tokens = std::max(shape.distinct_prefix_tokens, count_distinct(std::move(own.before)));
  }
  shape.all_distinct_tokens = count_distinct(std::move(all.whole));
  shape.all_distinct_prefix_tokens = count_distinct(std::move(all.before));
}

}  // namespace

ValueShape value_shape(std::span<const PreparedRequest> requests) {
  ValueShape shape;
  int64_t rows = 0, suffixes = 0;
  const auto raise = [](int64_t& most, int64_t value) { most = std::max(most, value); };
  for (const PreparedRequest& request : requests) {
    raise(shape.contexts, static_cast<int64_t>(request.rows.size()));
    std::vector<int64_t> contexts(request.rows.size());
    std::iota(contexts.begin(), contexts.end(), int64_t{0});
    raise(shape.drift_rows, row_with_drift(request, contexts) ? 0 : 1);
    raise(shape.prefix_tokens, request.drift.lookup);
    raise(shape.row_tokens, request.drift.lookup + 1);
    raise(shape.kept_rows, std::ssize(request.kept));
    int64_t kept_tokens = 0;
    for (const LocatedPrompt& prompt : request.kept) {
      raise(shape.row_tokens, std::ssize(prompt.ids));
      raise(shape.prefix_tokens, prompt.lookup);
      raise(shape.suffix_tokens, std::ssize(prompt.ids) - prompt.lookup);
      kept_tokens += std::ssize(prompt.ids) - prompt.lookup;
    }
    raise(shape.kept_tokens, kept_tokens);
    for (const TargetRow& row : request.rows) {
      raise(shape.target_tokens, static_cast<int64_t>(row.target.size()));
      const auto tokens = static_cast<int64_t>(row.ids.size());
      raise(shape.row_tokens, tokens);
      raise(shape.prefix_tokens, row.lookup);
      raise(shape.suffix_tokens, tokens - row.lookup);
      suffixes += tokens - row.lookup;
      ++rows;
    }
  }
  note_distinct(requests, shape);
  shape.mean_suffix_tokens = rows > 0 ? (suffixes + rows - 1) / rows : 0;
  return shape;
}

ValueBytes value_bytes(const ValueWork& work, const Stage& stage, int64_t requests) {
  const ValueShape& shape = work.shape;
  // the drift is read in the row of a context that begins with it
  const Rows rows{requests * shape.step_rows(), shape.prefix_tokens, shape.batch_tokens(requests), shape.suffix_tokens};
  const int64_t above = std::max<int64_t>(0, stage.end - std::max(stage.begin, work.layer + 1));
  const bool has_head = stage.end == work.config.n_layers;
  ValueBytes bytes;
  bytes.prefix = above * key_value_bytes(work.config, work.dtype, shape.packed_prefix_tokens(requests));
  // the model's last layer computes only the outputs that are read
  Rows last = rows;
  last.step_tokens = std::min(rows.step_tokens, rows.count * (shape.target_tokens + 1));
  const int64_t whole_layers = above - (has_head && above > 0 ? 1 : 0);
  int64_t kept = whole_layers * kept_bytes(work, stage, rows) + (above - whole_layers) * kept_bytes(work, stage, last);
  int64_t working = above > 0 ? working_bytes(work, stage, whole_layers > 0 ? rows : last) : 0;
  if (stage.begin <= work.layer && work.layer < stage.end)  // the edited layer's output from the lookup tokens on
    kept += (shape.groups + 1) * rows.step_tokens * work.config.d_model * element_bytes(work);
  if (has_head)
    working = std::max(working, loss_bytes(work, stage, requests * shape.contexts * shape.target_tokens,
                                           requests * (1 + shape.kept_rows)));
  // Adam's state, and the step's copies of it
  if (stage.begin <= work.layer && work.layer < stage.end)
    kept += 8 * requests * work.config.d_model * precise_bytes(work.dtype);
  bytes.activations = std::max(setup_bytes(work, stage, requests), kept + working);
  return bytes;
}

int64_t value_step_tokens(const ValueWork& work, const Placement& placement, int64_t share_tokens) {
  if (placement.is_host_only()) return std::clamp(share_tokens, kLeastHostTokens, kMostHostTokens);
  const int64_t batches = placement.batches_under_way();
  // leaves a little free for what exists between batches
  const auto fits = [&](int64_t tokens) {
    const int64_t requests = std::max<int64_t>(1, tokens / work.shape.step_tokens());
    return std::all_of(placement.stages().begin(), placement.stages().end(), [&](const Stage& stage) {
      const std::optional<int64_t> planned = placement.room_bytes(stage.device);
      const std::optional<int64_t> room = planned ? planned : free_bytes(stage.device);
      const ValueBytes bytes = value_bytes(work, stage, requests);
      return !room || batches * (bytes.activations + bytes.prefix) <= *room / 10 * 9;
    });
  };
  const auto floor_of = [](int64_t tokens) {
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, tokens))));
  };
  int64_t tokens = floor_of(kAcceleratorTokens / batches);
  while (tokens > work.shape.step_tokens() && !fits(tokens)) tokens /= 2;
  return batches == 1 ? tokens : std::min(tokens, std::max(floor_of(share_tokens), work.shape.step_tokens()));
}

namespace {

/// Returns the largest number of tokens that a step runs for a request.
int64_t step_tokens(const PreparedRequest& request, const ValueOptions& options) {
  const auto n_contexts = static_cast<int64_t>(request.rows.size());
  const int64_t n_groups = value_groups(n_contexts, options.contexts_per_step);
  int64_t most = 0;
  for (int64_t group = 0; group < n_groups; ++group) {
    const std::vector<int64_t> contexts = contexts_of_group(group, n_groups, n_contexts);
    int64_t tokens = row_with_drift(request, contexts) ? 0 : 1;
    for (const LocatedPrompt& prompt : request.kept) tokens += std::ssize(prompt.ids) - prompt.lookup;
    for (const int64_t context : contexts) {
      const LocatedPrompt& row = request.rows[static_cast<size_t>(context)];
      tokens += std::ssize(row.ids) - row.lookup;
    }
    most = std::max(most, tokens);
  }
  return most;
}

int64_t pieces_of(int64_t all, int64_t most) { return std::max<int64_t>(1, (all + most - 1) / most); }

}  // namespace

RowBatches deal_out(std::span<const int64_t> tokens, int64_t n_batches) {
  std::vector<int64_t> order(tokens.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](int64_t i) { return tokens[static_cast<size_t>(i)]; });
  RowBatches batches(static_cast<size_t>(std::min(n_batches, std::ssize(order))));
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t round = i / batches.size(), turn = i % batches.size();
    batches[round % 2 == 0 ? turn : batches.size() - 1 - turn].push_back(order[i]);
  }
  for (std::vector<int64_t>& batch : batches) std::ranges::sort(batch);
  return batches;
}

RowBatches plan_value_batches(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                              const ValueOptions& options, Communicator& communicator) {
  int64_t n_batches = 0;
  std::vector<int64_t> tokens;
  communicator.run_collectively("values", [&] {
    for (const PreparedRequest& request : requests) tokens.push_back(step_tokens(request, options));
    if (!communicator.is_root()) return;
    if (options.batch > 0) {
      n_batches = pieces_of(std::ssize(tokens), options.batch);
      return;
    }
    const int64_t below = first_step_layer(model.config(), options.site, layer) - 1;  // these layers are run once
    const ValueWork work{model.config(), model.placement().weight_dtype(), below,
                         in_groups(value_shape(requests), options.contexts_per_step)};
    const int64_t all_tokens = std::accumulate(tokens.begin(), tokens.end(), int64_t{0});
    const int64_t at_once = pieces_at_once(model.placement()) * communicator.size();
    n_batches = pieces_of(all_tokens, value_step_tokens(work, model.placement(), pieces_of(all_tokens, at_once)));
    // so that no core waits while others run a last batch
    if (model.placement().is_host_only() && n_batches > at_once) n_batches = pieces_of(n_batches, at_once) * at_once;
  });
  return deal_out(tokens, broadcast_numbers(communicator, {n_batches}).front());
}

std::vector<int64_t> heaviest_requests(std::span<const PreparedRequest> requests, const ValueOptions& options,
                                       RowBatches batches, int64_t n_batches) {
  std::vector<int64_t> tokens;
  for (const PreparedRequest& request : requests) tokens.push_back(step_tokens(request, options));
  const auto batch_tokens = [&](const std::vector<int64_t>& indices) {
    const auto of = [&](int64_t index) { return tokens[static_cast<size_t>(index)]; };
    return std::transform_reduce(indices.begin(), indices.end(), int64_t{0}, std::plus(), of);
  };
  std::ranges::stable_sort(batches, std::greater(), batch_tokens);
  batches.resize(std::min(batches.size(), static_cast<size_t>(n_batches)));
  std::vector<int64_t> heaviest;
  for (const std::vector<int64_t>& indices : batches) heaviest.insert(heaviest.end(), indices.begin(), indices.end());
  return heaviest;
}

}  // namespace lancet
