#include "delta_rule.h"

#include <torch/types.h>

namespace lancet {
namespace {

Tensor first_state(const DeltaTokens& tokens, const Tensor& state_RHKV) {
  if (state_RHKV.defined()) return state_RHKV;
  return torch::zeros(
      {tokens.key_RHTK.size(0), tokens.key_RHTK.size(1), tokens.key_RHTK.size(3), tokens.value_RHTV.size(3)},
      tokens.value_RHTV.options());
}

/// Returns tokens begin..begin + count - 1.
DeltaTokens narrowed(const DeltaTokens& tokens, int64_t begin, int64_t count) {
  const auto cut = [&](const Tensor& x) { return x.narrow(2, begin, count); };
  return {cut(tokens.query_RHTK), cut(tokens.key_RHTK), cut(tokens.value_RHTV), cut(tokens.rate_RHT),
          cut(tokens.decay_RHT)};
}

/// Runs one chunk. What each token learns, u_t, solves (I + A) U = B (V - e^G K S), where S is the state before the
/// chunk, G the running sums of the decays, B the rates, and A_ti = b_t e^(G_t - G_i) k_t k_i for i < t.
RuleResult run_chunk(const DeltaTokens& tokens, const Tensor& state_RHKV, StateAfter after) {
  const ChunkDecays decays = chunk_decays(tokens.decay_RHT);
  const Tensor rate_RHT1 = tokens.rate_RHT.unsqueeze(3);
  const Tensor key_RHKT = tokens.key_RHTK.transpose(2, 3);
  const Tensor mixed_RHTT = (torch::matmul(tokens.key_RHTK, key_RHKT) * decays.faded_RHTT * rate_RHT1).tril(-1);
  /// Returns what the state before the chunk gives for each token's key or query.
  const auto recalled = [&](const Tensor& x_RHTK) {
    return torch::matmul(x_RHTK, state_RHKV) * decays.sum_RHT.exp().unsqueeze(3);
  };
  const Tensor new_RHTV = state_RHKV.defined() ? tokens.value_RHTV - recalled(tokens.key_RHTK) : tokens.value_RHTV;
  const Tensor learned_RHTV = at::linalg_solve_triangular(mixed_RHTT, new_RHTV * rate_RHT1, /*upper=*/false,
                                                          /*left=*/true, /*unitriangular=*/true);
  const Tensor own_RHTV = torch::matmul(torch::matmul(tokens.query_RHTK, key_RHKT) * decays.faded_RHTT, learned_RHTV);
  RuleResult result{state_RHKV.defined() ? own_RHTV + recalled(tokens.query_RHTK) : own_RHTV, {}};
  if (after == StateAfter::kNone) return result;
  const Tensor added_RHKV = torch::matmul(key_RHKT * decays.to_end_RHT.unsqueeze(2), learned_RHTV);
  result.state_RHKV = state_RHKV.defined() ? state_RHKV * decays.whole_RH11 + added_RHKV : added_RHKV;
  return result;
}

}  // namespace

RuleResult delta_rule_by_tokens(const DeltaTokens& tokens, const Tensor& state_RHKV) {
  Tensor state = first_state(tokens, state_RHKV);
  std::vector<Tensor> out;
  for (int64_t t = 0; t < tokens.key_RHTK.size(2); ++t) {
    const Tensor key_RHK1 = tokens.key_RHTK.select(2, t).unsqueeze(3);
    state = state * tokens.decay_RHT.select(2, t).exp().unsqueeze(2).unsqueeze(3);
    const Tensor known_RH1V = torch::matmul(key_RHK1.transpose(2, 3), state);
    const Tensor learned_RH1V = (tokens.value_RHTV.select(2, t).unsqueeze(2) - known_RH1V) *
                                tokens.rate_RHT.select(2, t).unsqueeze(2).unsqueeze(3);
    state = state + key_RHK1 * learned_RH1V;
    out.push_back(torch::matmul(tokens.query_RHTK.select(2, t).unsqueeze(2), state));
  }
  return {torch::cat(out, 2), state};
}

RuleResult delta_rule(const DeltaTokens& tokens, const Tensor& state_RHKV, StateAfter after, int64_t chunk) {
  const int64_t n = tokens.key_RHTK.size(2);
  if (n == 1) return delta_rule_by_tokens(tokens, state_RHKV);
  return by_chunks(n, chunk, state_RHKV, after,
                   [&](int64_t begin, int64_t count, const Tensor& state, StateAfter wanted) {
                     return run_chunk(narrowed(tokens, begin, count), state, wanted);
                   });
}

}  // namespace lancet
