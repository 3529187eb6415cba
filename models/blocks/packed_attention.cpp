#include "packed_attention.h"

#include <torch/types.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "lancet/runtime/devices.h"
#include "lancet/runtime/send.h"

namespace lancet {
namespace {

/// Shorter documents share a row of the batch, because products with fewer rows do not fill the vector units.
constexpr int64_t kRowTokens = 16;

/// Query, key, value of a part of a packed row, without its batch dimension.
struct Part {
  Tensor query_HTC, key_KTC, value_KTC;

  Part narrow(int64_t begin, int64_t tokens) const {
    const auto cut = [&](const Tensor& x) { return x.narrow(1, begin, tokens); };
    return {cut(query_HTC), cut(key_KTC), cut(value_KTC)};
  }
};

/// Returns [group * T, T]: 0 where a token may attend, -inf elsewhere, for documents of `length` tokens in a row of T.
Tensor causal_blocks(int64_t row_tokens, int64_t length, int64_t group, const at::TensorOptions& options) {
  const Tensor document = torch::arange(row_tokens, options.dtype(torch::kLong)).div(length, "floor");
  const Tensor visible = (document.unsqueeze(1) == document.unsqueeze(0)).tril();
  return torch::zeros({row_tokens, row_tokens}, options)
      .masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity())
      .repeat({group, 1});
}

/// Computes attention for documents of `length` tokens, `row_tokens / length` of them in each row of the batch: [T, H,
/// C].
Tensor attend_in_rows(const Part& part, int64_t row_tokens, int64_t length, double scale) {
  const int64_t kv_heads = part.key_KTC.size(0);
  const int64_t group = part.query_HTC.size(0) / kv_heads;
  const int64_t rows = part.query_HTC.size(1) / row_tokens;
  const int64_t head_dim = part.query_HTC.size(2);
  const auto batch = [&](const Tensor& x_KTC) { return x_KTC.reshape({kv_heads * rows, row_tokens, head_dim}); };
  // The heads of a group become more queries of one key head.
  const Tensor query = part.query_HTC.reshape({kv_heads, group, rows, row_tokens, head_dim})
                           .transpose(1, 2)
                           .mul(scale)
                           .reshape({kv_heads * rows, group * row_tokens, head_dim});
  const Tensor blocks = causal_blocks(row_tokens, length, group, query.options());
  const Tensor weights = torch::baddbmm(blocks, query, batch(part.key_KTC).transpose(1, 2)).softmax(-1);
  return torch::bmm(weights, batch(part.value_KTC))
      .view({kv_heads, rows, group, row_tokens, head_dim})
      .permute({1, 3, 0, 2, 4})
      .reshape({rows * row_tokens, kv_heads * group, head_dim});
}

bool is_short(const DocumentRun& run, const Tensor& query, const PackedDocuments& packed, AttentionRule rule) {
  if (rule.is_bent() || (packed.window > 0 && packed.window < run.tokens)) return false;
  // In half precision the scores would be rounded, which the fused kernels do not do.
  const bool precise = query.scalar_type() == torch::kFloat || query.scalar_type() == torch::kDouble;
  return precise && run.tokens <= kShortTokens;
}

/// Appends parts [T, H, C].
void attend_short(const Part& part, const DocumentRun& run, double scale, std::vector<Tensor>& parts_THC) {
  const int64_t per_row = std::min((kRowTokens + run.tokens - 1) / run.tokens, run.documents);
  const int64_t rest = run.documents % per_row * run.tokens;
  const int64_t whole = run.documents * run.tokens - rest;
  parts_THC.push_back(attend_in_rows(part.narrow(0, whole), per_row * run.tokens, run.tokens, scale));
  if (rest > 0) parts_THC.push_back(attend_in_rows(part.narrow(whole, rest), rest, run.tokens, scale));
}

/// Copies [1, T, H, C] -> [P, H, C], with shared tokens at each of their places.
Tensor to_places(const Tensor& x_1THC, const PackedDocuments& packed) {
  const Tensor x_THC = x_1THC.squeeze(0);
  return packed.places_P.defined() ? x_THC.index_select(0, packed.places_P) : x_THC;
}

/// Takes [P, H, C] -> [1, T, H * C]: each token from its first place.
Tensor to_tokens(const Tensor& x_PHC, const PackedDocuments& packed) {
  const Tensor x_THC = packed.first_T.defined() ? x_PHC.index_select(0, packed.first_T) : x_PHC;
  return x_THC.flatten(1).unsqueeze(0);
}

/// Returns bool [N, 1, T, T]: true where a token of a document may attend.
Tensor causal_mask(const DocumentRun& run, int64_t window, at::Device device) {
  const Tensor seen = torch::ones({run.tokens, run.tokens}, at::TensorOptions(torch::kBool).device(device)).tril();
  return (window > 0 ? seen.triu(1 - window) : seen).expand({run.documents, 1, run.tokens, run.tokens});
}

/// Computes attention for the queries of some tokens: [1, O, H, C] -> [1, O, H * C].
Tensor attend_some(const Tensor& query_1OHC, const KeyValuePair& fresh_1TKC, const PackedDocuments& packed,
                   AttentionRule rule) {
  const PackedQueries& queries = packed.queries;
  const Tensor key_PKC = to_places(fresh_1TKC.key, packed), value_PKC = to_places(fresh_1TKC.value, packed);
  std::vector<Tensor> parts_XD;
  int64_t begin = 0, first_query = 0;
  for (size_t i = 0; i < packed.runs.size(); ++i) {
    const auto [documents, tokens] = packed.runs[i];
    const int64_t n_queries = documents * queries.per_document[i];
    const auto rows = [&, at = begin](const Tensor& x_PKC) {
      return x_PKC.narrow(0, at, documents * tokens).unflatten(0, {documents, tokens});
    };
    begin += documents * tokens;
    if (n_queries == 0) continue;
    const auto mine = [&](const Tensor& x_X) { return x_X.narrow(0, first_query, n_queries); };
    const Tensor query_NQHC = query_1OHC.squeeze(0)
                                  .index_select(0, mine(queries.outputs_X))
                                  .unflatten(0, {documents, queries.per_document[i]});
    const Tensor place_NQ1 = mine(queries.places_X).view({documents, -1, 1});
    const Tensor place_T = torch::arange(tokens, place_NQ1.options());
    Tensor seen_NQT = place_T <= place_NQ1;
    if (packed.window > 0) seen_NQT = seen_NQT & (place_NQ1 - place_T < packed.window);
    const KeyValuePair keys{rows(key_PKC), rows(value_PKC)};
    parts_XD.push_back(grouped_attention(query_NQHC, keys, {}, seen_NQT.unsqueeze(1), rule).flatten(0, 1));
    first_query += n_queries;
  }
  return torch::cat(parts_XD).index_select(0, queries.first_O).unsqueeze(0);
}

/// Whether a single launch can compute everything.
bool takes_varlen_kernel(const Tensor& query, const KeyValuePair& fresh, const PackedDocuments& packed,
                         AttentionRule rule) {
  VarlenCase attention = varlen_case(query, fresh.key, fresh.value, packed.bounds);
  attention.sees_all_before = packed.window == 0 || packed.window >= packed.bounds.most_tokens;
  attention.bends_scores = rule.is_bent();
  attention.every_query = !packed.queries.first_O.defined();
  return fits_varlen_kernel(attention);
}

}  // namespace

PackedDocuments packed_documents(const SequenceInfo& sequence, at::Device device) {
  PackedDocuments packed;
  packed.runs = sequence.packed;
  if (sequence.packed.empty()) return packed;
  if (sequence.places_P.defined()) {
    packed.places_P = sent_to(device, sequence.places_P);
    packed.first_T = sent_to(device, sequence.first_T);
  }
  if (compute_capability(device) == 0) return packed;
  std::vector<int64_t> lengths;
  for (const DocumentRun& run : sequence.packed)
    lengths.insert(lengths.end(), static_cast<size_t>(run.documents), run.tokens);
  packed.bounds = document_bounds(lengths, device);
  return packed;
}

PackedQueries packed_queries(const SequenceInfo& sequence, at::Device device) {
  const Tensor output_O = sequence.outputs_BO.flatten();
  const Tensor position_O = sequence.positions_BT.flatten().index_select(0, output_O);
  const Tensor first_place_O = sequence.first_T.defined() ? sequence.first_T.index_select(0, output_O) : output_O;
  const Tensor begin_O = first_place_O - position_O;
  std::unordered_map<int64_t, std::vector<int64_t>> by_document;  // outputs, by the place where their document begins
  for (int64_t o = 0; o < begin_O.size(0); ++o) by_document[begin_O.const_data_ptr<int64_t>()[o]].push_back(o);
  PackedQueries queries;
  std::vector<int64_t> outputs, places, first(static_cast<size_t>(begin_O.size(0)));
  int64_t begin = 0;
  for (const DocumentRun& run : sequence.packed) {
    const int64_t end = begin + run.documents * run.tokens;
    size_t most = 0;
    for (int64_t at = begin; at < end; at += run.tokens) most = std::max(most, by_document[at].size());
    queries.per_document.push_back(static_cast<int64_t>(most));
    for (; begin < end; begin += run.tokens) {
      for (const int64_t o : by_document[begin]) {
        first[static_cast<size_t>(o)] = static_cast<int64_t>(outputs.size());
        outputs.push_back(o);
        places.push_back(position_O.const_data_ptr<int64_t>()[o]);
      }
      // fills up with the first output, at the first place
      outputs.resize(outputs.size() + most - by_document[begin].size());
      places.resize(outputs.size());
    }
  }
  queries.outputs_X = to_index(outputs, device);
  queries.places_X = to_index(places, device);
  queries.first_O = to_index(first, device);
  return queries;
}

Tensor packed_attention_by(VarlenKernel kernel, const Tensor& query_1THC, const KeyValuePair& fresh_1TKC,
                           const PackedDocuments& packed, double scale) {
  const Tensor attended_PHC = kernel(to_places(query_1THC, packed), to_places(fresh_1TKC.key, packed),
                                     to_places(fresh_1TKC.value, packed), packed.bounds, scale);
  return to_tokens(attended_PHC, packed);
}

Tensor packed_attention(const Tensor& query_1QHC, const KeyValuePair& fresh_1TKC, const PackedDocuments& packed,
                        AttentionRule rule) {
  if (takes_varlen_kernel(query_1QHC, fresh_1TKC, packed, rule))
    return packed_attention_by(varlen_attention, query_1QHC, fresh_1TKC, packed, rule.scale);
  if (packed.queries.first_O.defined()) return attend_some(query_1QHC, fresh_1TKC, packed, rule);
  const auto by_head = [&](const Tensor& x_1THC) { return to_places(x_1THC, packed).transpose(0, 1); };
  const Part whole{by_head(query_1QHC), by_head(fresh_1TKC.key), by_head(fresh_1TKC.value)};
  std::vector<Tensor> parts_PHC;
  int64_t begin = 0;
  for (const DocumentRun& run : packed.runs) {
    const Part part = whole.narrow(begin, run.documents * run.tokens);
    begin += run.documents * run.tokens;
    if (is_short(run, query_1QHC, packed, rule)) {
      attend_short(part, run, rule.scale, parts_PHC);
      continue;
    }
    // documents as rows [N, T, H, C], which are views of the packed row
    const auto rows = [&](const Tensor& x_HPC) {
      return x_HPC.unflatten(1, {run.documents, run.tokens}).permute({1, 2, 0, 3});
    };
    const Tensor query = rows(part.query_HTC);
    // with a mask, the host's own loops compute attention: its fused kernel sets up every small product again
    const bool slides = packed.window > 0 && packed.window < run.tokens;
    const Tensor mask =
        slides || has_attention_loops(query) ? causal_mask(run, packed.window, query.device()) : Tensor();
    const Tensor attended = grouped_attention(query, {rows(part.key_KTC), rows(part.value_KTC)}, {}, mask, rule);
    parts_PHC.push_back(attended.flatten(0, 1).view_as(part.query_HTC.transpose(0, 1)));
  }
  return to_tokens(torch::cat(parts_PHC), packed);
}

}  // namespace lancet
