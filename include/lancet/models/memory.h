// How much memory weights and passes take, from a model's configuration alone. Counts tensors: what an allocator adds
// is not in it.
#pragma once

#include <cstdint>

#include "lancet/models/causal_lm.h"

namespace lancet {

/// Weights of a stage's layers; with the embedding on the first layer's stage, final norm and head on the last one's. A
/// tied head counts where it is another device than the embedding's. What the rule covers counts as it is kept, by
/// config.json alone; an edited part of a matrix that the checkpoint has quantised counts in both ways, since the other
/// parts need the whole.
int64_t weight_bytes(const ModelConfig& config, LayerRange layers, at::ScalarType dtype, const QuantiseRule& rule = {});

/// What quantised weights take on a device besides themselves.
struct UnpackingBytes {
  int64_t loading = 0;   ///< bytes of the largest matrix: in full precision, or in its stored form, while it is packed
  int64_t unpacked = 0;  ///< bytes of the largest in full precision, with what unpacking takes, while it is in use
};
/// Zeros where nothing is quantised. A weight of experts is a matrix for each.
UnpackingBytes unpacking_bytes(const ModelConfig& config, LayerRange layers, at::ScalarType dtype,
                               const QuantiseRule& rule, at::Device device);

/// Rows that go through the layers together.
struct PassShape {
  at::ScalarType dtype;
  int64_t tokens = 0;        ///< tokens of all rows, padding included
  int64_t score_tokens = 0;  ///< keys that a token's attention scores are held for; 0: by kernels that hold none
  int64_t places = 0;        ///< places of packed documents; 0: rows are not packed
  int64_t run_places = 0;    ///< places of documents of one length among them, which attend together
};

/// What a layer holds at its fullest in a pass without gradients, its input included.
int64_t layer_pass_bytes(const ModelConfig& config, const PassShape& pass);

/// What a recurrent mixer holds of `tokens` tokens in rows of up to `row_tokens`: at its fullest, and for the backward
/// pass. Zeros where no layer has one.
struct MixerBytes {
  int64_t working = 0;
  int64_t kept = 0;
};
MixerBytes mixer_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t tokens, int64_t row_tokens);

/// The state of a recurrent mixer between two tokens of a row; 0 where no layer has one.
int64_t mixer_state_bytes(const ModelConfig& config, at::ScalarType dtype);

/// What logits of `rows` positions and their softmax hold at their fullest.
int64_t head_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t rows);

/// What products with the layers' matrices, of `tokens` rows forward or backward, take at their fullest beside a pass:
/// more than nothing on a host that widens numbers for them (kernels/linear.h).
int64_t layer_product_bytes(const ModelConfig& config, const Stage& stage, at::ScalarType dtype, int64_t tokens);

/// Returns what products with the head take likewise, forward.
int64_t head_product_bytes(const ModelConfig& config, const Stage& stage, at::ScalarType dtype, int64_t rows);

/// Positions whose logits and softmax are held together where any number would do: as many as take 256 MiB, of 1 to
/// 1024.
int64_t rows_per_head_call(const ModelConfig& config, at::ScalarType dtype);

/// Keys and values of `tokens` positions of one layer, or what a recurrent mixer reads of them.
int64_t key_value_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t tokens);

/// Elements of all heads' queries of one token.
inline int64_t query_size(const ModelConfig& config) { return config.n_heads * config.attended_dim(); }

/// Whether attention on a device holds scores: without a kernel that holds none, and always where scores are capped.
bool holds_scores(const ModelConfig& config, at::Device device, at::ScalarType dtype);

/// Returns of how many keys attention holds scores for, within packed documents of at most `document_tokens`.
int64_t packed_score_tokens(const ModelConfig& config, at::Device device, at::ScalarType dtype,
                            int64_t document_tokens);

/// Numbers that the output projection of a layer's attention or mixer reads.
inline int64_t heads_input_size(const ModelConfig& config, int64_t layer) {
  return config.has_attention(layer) ? config.attended_size() : config.recurrence.value_size();
}

/// Matrices of an MLP.
inline int64_t mlp_matrices(const ModelConfig& config) { return config.gated_mlp ? 3 : 2; }

/// f64 models compute values, softmaxes and norms in f64, all others in f32.
inline int64_t precise_bytes(at::ScalarType dtype) { return dtype == at::kDouble ? 8 : 4; }

}  // namespace lancet
