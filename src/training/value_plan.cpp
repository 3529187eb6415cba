#include "lancet/training/value_plan.h"

#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "lancet/runtime/collectives.h"
#include "lancet/runtime/host_workers.h"
#include "lancet/training/value_memory.h"

namespace lancet {
namespace {

/// Tokens that the fullest step runs for a request.
int64_t step_tokens(const PreparedRequest& request, const ValueOptions& options) {
  const auto n_contexts = static_cast<int64_t>(request.rows.size());
  const int64_t n_groups = value_groups(n_contexts, options.contexts_per_step);
  int64_t most = 0;
  for (int64_t group = 0; group < n_groups; ++group) {
    const std::vector<int64_t> contexts = contexts_of_group(group, n_groups, n_contexts);
    int64_t tokens = row_with_drift(request, contexts) ? 0 : 1;
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
    const int64_t below = first_step_layer(model.config(), options.site, layer) - 1;  // what is run once
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
