#include "selective_space.h"

#include <torch/types.h>

namespace lancet {
namespace {

/// What the state is multiplied by before a token, and what the token adds: [R, H, K, T].
struct Changes {
  Tensor factor_RHKT;
  Tensor added_RHKT;
};

Changes changes_of(const SelectiveTokens& tokens) {
  return {(tokens.step_RHT.unsqueeze(2) * tokens.rate_HK.unsqueeze(2)).exp(),
          tokens.value_RHT.unsqueeze(2) * tokens.key_RTK.mT().unsqueeze(1)};
}

/// Returns the joint changes of the last 2, 4, 8, ... tokens, until they reach the first one (Hillis and Steele, 1986).
Changes summed(Changes changes) {
  const int64_t n = changes.factor_RHKT.size(3);
  for (int64_t span = 1; span < n; span *= 2) {
    const auto late = [&](const Tensor& x) { return x.narrow(3, span, n - span); };
    const auto early = [&](const Tensor& x) { return x.narrow(3, 0, n - span); };
    const auto first = [&](const Tensor& x) { return x.narrow(3, 0, span); };
    const Tensor& factor = changes.factor_RHKT;
    const Tensor& added = changes.added_RHKT;
    changes = {torch::cat({first(factor), late(factor) * early(factor)}, 3),
               torch::cat({first(added), late(factor) * early(added) + late(added)}, 3)};
  }
  return changes;
}

/// Returns what each token reads from the state after it: [R, H, T, 1].
Tensor read_by(const Tensor& query_RTK, const Tensor& state_RHKT) {
  return (state_RHKT * query_RTK.mT().unsqueeze(1)).sum(2).unsqueeze(3);
}

RuleResult run_selective_chunk(const SelectiveTokens& tokens, const Tensor& state_RHK1) {
  const Changes changes = summed(changes_of(tokens));
  const Tensor state_RHKT =
      state_RHK1.defined() ? changes.factor_RHKT * state_RHK1 + changes.added_RHKT : changes.added_RHKT;
  return {read_by(tokens.query_RTK, state_RHKT), state_RHKT.narrow(3, state_RHKT.size(3) - 1, 1)};
}

}  // namespace

RuleResult selective_space_by_tokens(const SelectiveTokens& tokens, const Tensor& state_RHK1) {
  const Changes changes = changes_of(tokens);
  Tensor state = state_RHK1;
  std::vector<Tensor> out;
  for (int64_t t = 0; t < tokens.step_RHT.size(2); ++t) {
    const Tensor added = changes.added_RHKT.narrow(3, t, 1);
    state = state.defined() ? state * changes.factor_RHKT.narrow(3, t, 1) + added : added;
    out.push_back(read_by(tokens.query_RTK.narrow(1, t, 1), state));
  }
  return {torch::cat(out, 2), state};
}

RuleResult selective_space(const SelectiveTokens& tokens, const Tensor& state_RHK1, StateAfter after, int64_t chunk) {
  const int64_t n = tokens.step_RHT.size(2);
  if (n == 1) return selective_space_by_tokens(tokens, state_RHK1);
  return by_chunks(n, chunk, state_RHK1, after, [&](int64_t begin, int64_t count, const Tensor& state, StateAfter) {
    return run_selective_chunk(
        {tokens.query_RTK.narrow(1, begin, count), tokens.key_RTK.narrow(1, begin, count),
         tokens.value_RHT.narrow(2, begin, count), tokens.step_RHT.narrow(2, begin, count), tokens.rate_HK},
        state);
  });
}

}  // namespace lancet
