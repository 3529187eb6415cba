// How much memory weights and passes take, computed from a model's configuration only. It counts tensors, without the
// overhead of an allocator.
#pragma once

#include <cstdint>

#include "lancet/models/causal_lm.h"

namespace lancet {

/// Returns the bytes of the weights of a stage's layers, plus the embedding for the first layer's stage and the final
/// norm and head for the last one's. A tied head counts only if it is on another device than the embedding. Weights
/// that the rule covers count in their quantised form, according to config.json. If an edited weight is a part of a
/// matrix that the checkpoint has quantised, it counts twice, in full precision and quantised, because the other parts
/// need the whole matrix.
int64_t weight_bytes(const ModelConfig& config, LayerRange layers, at::ScalarType dtype, const QuantiseRule& rule = {});

/// The memory that a device needs for quantised weights in addition to the weights themselves.
struct UnpackingBytes {
  int64_t loading = 0;  ///< bytes of the largest matrix while it is packed: in full precision or in its stored form
  /// Bytes of the largest matrix in full precision while it is used, plus the work space of unpacking.
  int64_t unpacked = 0;
};
/// Computes these bytes: zeros if nothing is quantised. A weight of experts counts as one matrix per expert.
UnpackingBytes unpacking_bytes(const ModelConfig& config, LayerRange layers, at::ScalarType dtype,
                               const QuantiseRule& rule, at::Device device);

/// The size of a pass: the rows that go through the layers together.
struct PassShape {
  at::ScalarType dtype;
  int64_t tokens = 0;  ///< tokens of all rows, padding included
  /// Number of keys for which attention keeps a token's scores; 0: the kernels store no scores.
  int64_t score_tokens = 0;
  int64_t places = 0;      ///< places of packed documents; 0: the rows are not packed
  int64_t run_places = 0;  ///< most places of documents of equal length, which attend together
};

/// Returns the peak bytes of a layer in a pass without gradients, its input included.
int64_t layer_pass_bytes(const ModelConfig& config, const PassShape& pass);

/// The bytes of a recurrent mixer for `tokens` tokens in rows of up to `row_tokens`: at the peak, and kept for the
/// backward pass. Zeros if no layer has a mixer.
struct MixerBytes {
  int64_t working = 0;
  int64_t kept = 0;
};
MixerBytes mixer_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t tokens, int64_t row_tokens);

/// Returns the bytes of a recurrent mixer's state between two tokens of a row; 0 if no layer has a mixer.
int64_t mixer_state_bytes(const ModelConfig& config, at::ScalarType dtype);

/// Returns the peak bytes of the logits of `rows` positions and their softmax.
int64_t head_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t rows);

/// Returns the peak scratch bytes of products with the layers' matrices, for `tokens` rows, forward or backward. It is
/// above 0 only on a host that widens numbers for them (kernels/linear.h).
int64_t layer_product_bytes(const ModelConfig& config, const Stage& stage, at::ScalarType dtype, int64_t tokens);

/// Returns the peak scratch bytes of forward products with the head, in the same way.
int64_t head_product_bytes(const ModelConfig& config, const Stage& stage, at::ScalarType dtype, int64_t rows);

/// Returns how many positions to process together when the result does not depend on it: as many as have logits and
/// softmax of 256 MiB, from 1 to 1024.
int64_t rows_per_head_call(const ModelConfig& config, at::ScalarType dtype);

/// Returns the bytes of the keys and values of `tokens` positions of one layer, or of what a recurrent mixer reads of
/// these positions.
int64_t key_value_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t tokens);

/// Returns the number of elements of all heads' queries of one token.
inline int64_t query_size(const ModelConfig& config) { return config.n_heads * config.attended_dim(); }

/// Whether attention on a device stores scores: it does if no fused kernel is available, and always if scores are
/// capped.
bool holds_scores(const ModelConfig& config, at::Device device, at::ScalarType dtype);

/// Returns for how many keys attention stores scores, within packed documents of at most `document_tokens`.
int64_t packed_score_tokens(const ModelConfig& config, at::Device device, at::ScalarType dtype,
                            int64_t document_tokens);

/// Returns the input size of the output projection of a layer's attention or mixer.
inline int64_t heads_input_size(const ModelConfig& config, int64_t layer) {
  return config.has_attention(layer) ? config.attended_size() : config.recurrence.value_size();
}

/// Returns the number of matrices of an MLP.
inline int64_t mlp_matrices(const ModelConfig& config) { return config.gated_mlp ? 3 : 2; }

/// Returns the bytes of one number of the precise type: f64 models compute values, softmaxes and norms in f64, all
/// others in f32.
inline int64_t precise_bytes(at::ScalarType dtype) { return dtype == at::kDouble ? 8 : 4; }

}  // namespace lancet
