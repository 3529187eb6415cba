// What rules that carry a state from token to token share: chunks of tokens, and decays as logarithms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Whether the state behind the last token is wanted: it takes the memory of as many tokens as a head has numbers.
enum class StateAfter : uint8_t { kNone, kGiven };

/// R rows, H heads, T tokens, K numbers of a key, V of a value.
struct RuleResult {
  Tensor out_RHTV;
  Tensor state_RHKV;  ///< state behind the last token; perhaps undefined where nobody asked for it
};

/// Tokens of a chunk.
inline constexpr int64_t kMixerChunk = 64;

/// What is left of a state within a chunk.
struct ChunkDecays {
  Tensor sum_RHT;     ///< logarithm of what is left behind each token of the state before the chunk
  Tensor faded_RHTT;  ///< [t, i]: what is left behind token t of what token i added; 0 where i comes later
  Tensor to_end_RHT;  ///< what is left of it behind the last token
  Tensor whole_RH11;  ///< what is left there of the state before the chunk
};

/// decay [R, H, T]: logarithm of what the state is multiplied by before each token, at most 0.
ChunkDecays chunk_decays(const Tensor& decay_RHT);

/// Runs `count` tokens by chunks, the last one perhaps shorter, from `state_RHKV` on: `run_chunk` takes the first
/// token, the number of tokens, the state before (undefined: zeros) and whether the one behind is wanted.
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
