#include "state_space.h"

#include <torch/types.h>

namespace lancet {
namespace {

int64_t heads_of_group(const StateSpaceTokens& tokens) { return tokens.value_RHTV.size(1) / tokens.key_RGTK.size(1); }

/// Puts the heads of each group side by side, so that one product has them all: [R, H, X, V] -> [R, G, X, J * V].
Tensor beside(const Tensor& x_RHXV, int64_t groups) {
  return x_RHXV.unflatten(1, {groups, -1}).transpose(2, 3).flatten(3);
}

/// The inverse of beside().
Tensor by_head(const Tensor& x_RGXN, int64_t heads) {
  return x_RGXN.unflatten(3, {heads, -1}).transpose(2, 3).flatten(1, 2);
}

/// Runs one chunk: each token reads from the tokens before it in the chunk, and from the state before the chunk.
RuleResult run_state_chunk(const StateSpaceTokens& tokens, const Tensor& state_RHKV, StateAfter after) {
  const int64_t groups = tokens.key_RGTK.size(1), heads = heads_of_group(tokens);
  const ChunkDecays decays = chunk_decays(tokens.decay_RHT);
  const Tensor key_RGKT = tokens.key_RGTK.transpose(2, 3);
  const Tensor score_RHTT = torch::matmul(tokens.query_RGTK, key_RGKT).repeat_interleave(heads, 1) * decays.faded_RHTT;
  RuleResult result{torch::matmul(score_RHTT, tokens.value_RHTV), {}};
  if (state_RHKV.defined())
    result.out_RHTV = result.out_RHTV + by_head(torch::matmul(tokens.query_RGTK, beside(state_RHKV, groups)), heads) *
                                            decays.sum_RHT.exp().unsqueeze(3);
  if (after == StateAfter::kNone) return result;
  const Tensor left_RHTV = tokens.value_RHTV * decays.to_end_RHT.unsqueeze(3);
  const Tensor added_RHKV = by_head(torch::matmul(key_RGKT, beside(left_RHTV, groups)), heads);
  result.state_RHKV = state_RHKV.defined() ? state_RHKV * decays.whole_RH11 + added_RHKV : added_RHKV;
  return result;
}

}  // namespace

RuleResult state_space_by_tokens(const StateSpaceTokens& tokens, const Tensor& state_RHKV) {
  const int64_t heads = heads_of_group(tokens);
  const auto of_heads = [&](const Tensor& x_RGTK, int64_t t) {
    return x_RGTK.select(2, t).repeat_interleave(heads, 1);
  };
  Tensor state = state_RHKV;
  std::vector<Tensor> out;
  for (int64_t t = 0; t < tokens.key_RGTK.size(2); ++t) {
    const Tensor added_RHKV = of_heads(tokens.key_RGTK, t).unsqueeze(3) * tokens.value_RHTV.select(2, t).unsqueeze(2);
    state = state.defined() ? state * tokens.decay_RHT.select(2, t).exp().unsqueeze(2).unsqueeze(3) + added_RHKV
                            : added_RHKV;
    out.push_back(torch::matmul(of_heads(tokens.query_RGTK, t).unsqueeze(2), state));
  }
  return {torch::cat(out, 2), state};
}

RuleResult state_space(const StateSpaceTokens& tokens, const Tensor& state_RHKV, StateAfter after, int64_t chunk) {
  const int64_t n = tokens.key_RGTK.size(2);
  if (n == 1) return state_space_by_tokens(tokens, state_RHKV);
  return by_chunks(n, chunk, state_RHKV, after,
                   [&](int64_t begin, int64_t count, const Tensor& state, StateAfter wanted) {
                     const auto cut = [&](const Tensor& x) { return x.narrow(2, begin, count); };
                     return run_state_chunk(
                         {cut(tokens.query_RGTK), cut(tokens.key_RGTK), cut(tokens.value_RHTV), cut(tokens.decay_RHT)},
                         state, wanted);
                   });
}

}  // namespace lancet
