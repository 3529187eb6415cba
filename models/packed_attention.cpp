#include "packed_attention.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lancet {
namespace {

/// Up to this many tokens plain batched products beat the fused kernel, whose cost per document and head then outweighs
/// the arithmetic (measured on a CPU in f32: 2 to 4 times at 6 to 21 tokens, equal at 64).
constexpr int64_t kShortTokens = 64;
/// Documents shorter than this share a row of the batch: products of fewer rows leave the vector units idle.
constexpr int64_t kRowTokens = 16;

/// Query, key, value of part of a packed row, without its batch dimension.
struct Part {
  Tensor query_HTC, key_KTC, value_KTC;

  Part narrow(int64_t begin, int64_t tokens) const {
    const auto cut = [&](const Tensor& x) { return x.narrow(1, begin, tokens); };
    return {cut(query_HTC), cut(key_KTC), cut(value_KTC)};
  }
};

/// [group * T, T]: 0 where a token may attend, -inf elsewhere; documents of `length` tokens in a row of T.
Tensor causal_blocks(int64_t row_tokens, int64_t length, int64_t group, const at::TensorOptions& options) {
  const Tensor document = torch::arange(row_tokens, options.dtype(torch::kLong)).div(length, "floor");
  const Tensor visible = (document.unsqueeze(1) == document.unsqueeze(0)).tril();
  return torch::zeros({row_tokens, row_tokens}, options)
      .masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity())
      .repeat({group, 1});
}

/// Documents of `length` tokens, `row_tokens / length` of them in each row of the batch -> [T, H, C].
Tensor attend_in_rows(const Part& part, int64_t row_tokens, int64_t length) {
  const int64_t kv_heads = part.key_KTC.size(0);
  const int64_t group = part.query_HTC.size(0) / kv_heads;
  const int64_t rows = part.query_HTC.size(1) / row_tokens;
  const int64_t head_dim = part.query_HTC.size(2);
  const auto batch = [&](const Tensor& x_KTC) { return x_KTC.reshape({kv_heads * rows, row_tokens, head_dim}); };
  // The heads of a group become more queries of one key head.
  const Tensor query = part.query_HTC.reshape({kv_heads, group, rows, row_tokens, head_dim})
                           .transpose(1, 2)
                           .mul(1.0 / std::sqrt(static_cast<double>(head_dim)))
                           .reshape({kv_heads * rows, group * row_tokens, head_dim});
  const Tensor blocks = causal_blocks(row_tokens, length, group, query.options());
  const Tensor weights = torch::baddbmm(blocks, query, batch(part.key_KTC).transpose(1, 2)).softmax(-1);
  return torch::bmm(weights, batch(part.value_KTC))
      .view({kv_heads, rows, group, row_tokens, head_dim})
      .permute({1, 3, 0, 2, 4})
      .reshape({rows * row_tokens, kv_heads * group, head_dim});
}

bool is_short(const DocumentRun& run, const Tensor& query) {
  // In half precision the scores would be rounded, which the fused kernels do not do.
  const bool precise = query.scalar_type() == torch::kFloat || query.scalar_type() == torch::kDouble;
  return precise && run.tokens <= kShortTokens;
}

/// Appends parts [T, H, C].
void attend_short(const Part& part, const DocumentRun& run, std::vector<Tensor>& parts_THC) {
  const int64_t per_row = std::min((kRowTokens + run.tokens - 1) / run.tokens, run.documents);
  const int64_t rest = run.documents % per_row * run.tokens;
  const int64_t whole = run.documents * run.tokens - rest;
  parts_THC.push_back(attend_in_rows(part.narrow(0, whole), per_row * run.tokens, run.tokens));
  if (rest > 0) parts_THC.push_back(attend_in_rows(part.narrow(whole, rest), rest, run.tokens));
}

}  // namespace

Tensor packed_attention(const Tensor& query_1THC, const KeyValuePair& fresh_1TKC, const PackedDocuments& packed) {
  // [1, T, H, C] -> [H, P, C], shared tokens at each of their places
  const auto to_places = [&](const Tensor& x_1THC) {
    const Tensor x_THC = x_1THC.squeeze(0);
    return (packed.places_P.defined() ? x_THC.index_select(0, packed.places_P) : x_THC).transpose(0, 1);
  };
  const Part whole{to_places(query_1THC), to_places(fresh_1TKC.key), to_places(fresh_1TKC.value)};
  std::vector<Tensor> parts_PHC;
  int64_t begin = 0;
  for (const DocumentRun& run : packed.runs) {
    const Part part = whole.narrow(begin, run.documents * run.tokens);
    begin += run.documents * run.tokens;
    if (is_short(run, query_1THC)) {
      attend_short(part, run, parts_PHC);
      continue;
    }
    // documents as rows [N, T, H, C]: views of the packed row
    const auto rows = [&](const Tensor& x_HPC) {
      return x_HPC.unflatten(1, {run.documents, run.tokens}).permute({1, 2, 0, 3});
    };
    const Tensor attended =
        grouped_attention(rows(part.query_HTC), {rows(part.key_KTC), rows(part.value_KTC)}, {}, Tensor());
    parts_PHC.push_back(attended.flatten(0, 1).view_as(part.query_HTC.transpose(0, 1)));
  }
  const Tensor attended_PHC = torch::cat(parts_PHC);
  const Tensor attended_THC = packed.first_T.defined() ? attended_PHC.index_select(0, packed.first_T) : attended_PHC;
  return attended_THC.flatten(1).unsqueeze(0);
}

}  // namespace lancet
