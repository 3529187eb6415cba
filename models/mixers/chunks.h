// Shared by rules that carry a state from token to token: chunks of tokens, and decays as logarithms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Whether the state after the last token is needed. It takes the memory of as many tokens as a head has numbers.
enum class StateAfter : uint8_t { kNone, kGiven };

/// R rows, H heads, T tokens, K numbers of a key, V of a value.
struct RuleResult {
  Tensor out_RHTV;
  Tensor state_RHKV;  ///< state after the last token; may be undefined if it is not needed
};

/// The number of tokens in a chunk.
inline constexpr int64_t kMixerChunk = 64;

/// How a state decays within a chunk.
struct ChunkDecays {
  Tensor sum_RHT;     ///< logarithm of the share of the state before the chunk that remains after each token
  Tensor faded_RHTT;  ///< [t, i]: share of token i's addition that remains after token t; 0 if i is later
  Tensor to_end_RHT;  ///< share that remains after the last token
  Tensor whole_RH11;  ///< share of the state before the chunk that remains there
};

/// decay [R, H, T]: logarithm of the factor of the state before each token, at most 0.
ChunkDecays chunk_decays(const Tensor& decay_RHT);

/// Runs `count` tokens in chunks (the last one may be shorter), beginning with `state_RHKV`. `run_chunk` gets the first
/// token, the number of tokens, the state before (undefined: zeros), and whether the state after is needed.
template <typename RunChunk>
RuleResult by_chunks(int64_t count, int64_t chunk, const Tensor& state_RHKV, StateAfter after, RunChunk run_chunk) {
  Tensor state = state_RHKV;
  std::vector<Tensor> out;
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const bool is_last = begin + chunk >= count;
    RuleResult part = run_chunk(begin, std::min(chunk, count - begin), state, is_last ? after : StateAfter::kGiven);
    out.push_back(std::move(part.out_RHTV));
    state = std::move(part.state_RHKV);
  }
  return {at::cat(out, 2), state};
}

}  // namespace lancet
