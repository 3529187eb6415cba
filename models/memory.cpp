#include "lancet/models/memory.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "blocks/packed_attention.h"
#include "lancet/checkpoint/module_name.h"
#include "lancet/kernels/linear.h"
#include "lancet/runtime/devices.h"
#include "mixers/chunks.h"
#include "mixers/selective_space.h"

namespace lancet {
namespace {

int64_t element_bytes(at::ScalarType dtype) { return static_cast<int64_t>(c10::elementSize(dtype)); }

/// Returns the bytes of a copy in f32 with which half-precision tensors are processed.
int64_t copy_bytes(at::ScalarType dtype) { return element_bytes(dtype) < 4 ? 4 : 0; }

/// Whether a layer has an MLP, experts, a mixer, attention. Layers in which all four are equal need the same memory.
using LayerKind = std::array<bool, 4>;
LayerKind layer_kind(const ModelConfig& config, int64_t layer) {
  return {config.has_mlp(layer), config.has_experts(layer), config.has_recurrence(layer), config.has_attention(layer)};
}

/// The size of a weight's matrix, as the checkpoint has it, or as it is quantised. With experts, it is that of one
/// expert.
struct QuantisedSize {
  int64_t matrices = 1;
  int64_t rows = 0, columns = 0;          ///< size of the weight's part of a matrix
  std::optional<MatrixCode> stored = {};  ///< nullopt: the rule's quantiser

  int64_t packed(const QuantiseRule& rule) const {
    return stored ? packed_bytes(*stored, rows, columns) : quantised_bytes(*rule.quantiser, rows, columns);
  }
};

/// Returns the size of a weight that stays quantised; nullopt if it does not.
std::optional<QuantisedSize> quantised_size(const ModelConfig& config, const WeightSpec& spec,
                                            const QuantiseRule& rule) {
  if (!rule.covers(spec.id)) return std::nullopt;
  QuantisedSize size{.matrices = spec.experts};
  size.rows = spec.shape[0] / (spec.parts_axis() == 0 ? size.matrices : 1);
  size.columns = spec.shape[1] / (spec.parts_axis() == 1 ? size.matrices : 1);
  if (config.quantised != nullptr) size.stored = config.quantised->code_of(module_of(spec.stored.tensors.front()));
  return size.stored || rule.quantiser ? std::optional(size) : std::nullopt;
}

int64_t layer_bytes(const ModelConfig& config, LayerRange layers, at::ScalarType dtype, const QuantiseRule& rule) {
  const QuantiseRule unedited{{}, rule.quantiser};
  const auto kept_bytes = [&](const WeightSpec& spec) {
    const std::optional<QuantisedSize> quantised = quantised_size(config, spec, unedited);
    return quantised ? quantised->matrices * quantised->packed(rule) : spec.size() * element_bytes(dtype);
  };
  std::map<LayerKind, int64_t> of_layer;
  int64_t bytes = 0;
  for (int64_t layer = layers.begin; layer < layers.end; ++layer) {
    const auto [known, is_new] = of_layer.try_emplace(layer_kind(config, layer));
    if (is_new)
      for (const WeightSpec& spec : layer_table(config, layer)) known->second += kept_bytes(spec);
    bytes += known->second;
  }
  for (const WeightId id : rule.edited) {
    if (id.layer < layers.begin || id.layer >= layers.end) continue;
    const WeightSpec spec = weight_spec(config, id);
    if (!quantised_size(config, spec, unedited)) continue;
    bytes += spec.size() * element_bytes(dtype);
    // a matrix that other weights share is kept as a whole for them
    const bool lies_apart = spec.is_whole() || has_all_experts(spec.stored.layout);
    if (config.quantised == nullptr || lies_apart) bytes -= kept_bytes(spec);
  }
  return bytes;
}

}  // namespace

int64_t weight_bytes(const ModelConfig& config, LayerRange layers, at::ScalarType dtype, const QuantiseRule& rule) {
  const bool is_first = layers.begin == 0, is_last = layers.end == config.n_layers;
  ModelConfig outside = config;
  outside.n_layers = 0;
  int64_t elements = 0;
  for (const WeightSpec& spec : weight_table(outside)) {
    const bool is_head = role_of(spec.id.kind).place == WeightPlace::kHead;
    const bool serves_as_head = config.tied_embeddings && spec.id.kind == WeightKind::kEmbedding;
    if (is_head ? is_last : is_first || (is_last && serves_as_head)) elements += spec.size();
  }
  return elements * element_bytes(dtype) + layer_bytes(config, layers, dtype, rule);
}

UnpackingBytes unpacking_bytes(const ModelConfig& config, LayerRange layers, at::ScalarType dtype,
                               const QuantiseRule& rule, at::Device device) {
  UnpackingBytes most;
  std::set<LayerKind> seen;
  for (int64_t layer = layers.begin; layer < layers.end; ++layer) {
    if (!seen.insert(layer_kind(config, layer)).second) continue;
    for (const WeightSpec& spec : layer_table(config, layer)) {
      const std::optional<QuantisedSize> quantised = quantised_size(config, spec, {{}, rule.quantiser});
      if (!quantised) continue;
      const int64_t full = quantised->rows * quantised->columns * element_bytes(dtype);
      const int64_t scratch = PackedMatrix::scratch_bytes(quantised->rows, quantised->columns, device);
      most.unpacked = std::max(most.unpacked, full + scratch);
      if (quantised->stored) {  // with the rows of other weights; its parts take at most twice its bytes
        const int64_t matrices = has_all_experts(spec.stored.layout) ? spec.experts : 1;
        const int64_t rows = c10::multiply_integers(spec.stored.shape) / (matrices * quantised->columns);
        most.loading = std::max(most.loading, 2 * packed_bytes(*quantised->stored, rows, quantised->columns));
      } else {
        most.loading = std::max(most.loading, full + scratch);
      }
    }
  }
  return most;
}

bool holds_scores(const ModelConfig& config, at::Device device, at::ScalarType dtype) {
  return config.attention_cap > 0 || config.attention_sinks || !fuses_attention(device, dtype);
}

int64_t packed_score_tokens(const ModelConfig& config, at::Device device, at::ScalarType dtype,
                            int64_t document_tokens) {
  if (holds_scores(config, device, dtype)) return document_tokens;
  const bool holds_short = element_bytes(dtype) >= 4 || device == Placement::host();
  return holds_short ? std::min(document_tokens, kShortTokens) : 0;
}

namespace {

/// What a mixer holds without gradients: bytes for each token of a pass, and for each row that runs together with
/// others.
struct MixerWork {
  int64_t of_pass = 0;  ///< channels after the projection and joined; results, and their factors
  int64_t of_run = 0;   ///< results of the convolution and the rule for rows of one length
};

/// The squares of a chunk exist for one chunk at a time, in rows of up to `row_tokens`.
int64_t chunk_of(int64_t row_tokens) { return std::clamp<int64_t>(row_tokens, 1, kMixerChunk); }

/// The work of a convolution or a state space: keys and queries are shared by all heads, and each chunk has a state.
MixerWork plain_work(const RecurrenceConfig& mixer, at::ScalarType dtype, int64_t row_tokens) {
  const int64_t element = element_bytes(dtype), precise = precise_bytes(dtype), chunk = chunk_of(row_tokens);
  const int64_t channels = precise * 3 * mixer.channels();
  if (mixer.kind == MixerKind::kShortConvolution)
    return {element * (4 * mixer.channels() + 3 * mixer.value_size()), channels};
  const int64_t of_state = 4 * mixer.state_size() / chunk + 4 * mixer.key_size() + 8 * mixer.value_size();
  return {element * 4 * mixer.channels() + precise * 6 * mixer.value_size(),
          channels + precise * (of_state + mixer.value_heads * 5 * chunk)};
}

/// The work of a selective state space: for one chunk at a time, each token has the states of its channels, their decay
/// and its addition, at each doubling of the spans that are summed: before and after, and three products.
MixerWork selective_work(const RecurrenceConfig& mixer, at::ScalarType dtype, int64_t row_tokens) {
  const int64_t element = element_bytes(dtype), precise = precise_bytes(dtype), values = mixer.value_size();
  const int64_t row = std::max<int64_t>(row_tokens, 1), chunk = std::min(row, kSelectiveChunk);
  const int64_t channels = precise * 8 * values + (element + precise) * 3 * (mixer.step_rank + 2 * mixer.key_size());
  const int64_t of_states = precise * mixer.state_size();
  return {element * 8 * values, channels + of_states + of_states * 7 * chunk / row};
}

/// The work of the delta rule: channels after the projection, joined, and after the convolution, whose sum is precise;
/// queries and keys as they are, of unit length, and for every head; values and their results; products of a chunk's
/// tokens.
MixerWork delta_work(const RecurrenceConfig& mixer, at::ScalarType dtype, int64_t row_tokens) {
  const int64_t element = element_bytes(dtype), precise = precise_bytes(dtype);
  const int64_t squares = mixer.value_heads * chunk_of(row_tokens);
  const int64_t of_heads = 6 * mixer.value_heads * mixer.key_dim + 6 * mixer.value_size() + 5 * squares;
  return {element * 4 * mixer.channels(), precise * (3 * mixer.channels() + of_heads)};
}

MixerWork work_of(const RecurrenceConfig& mixer, at::ScalarType dtype, int64_t row_tokens) {
  if (mixer.is_selective()) return selective_work(mixer, dtype, row_tokens);
  return mixer.kind == MixerKind::kGatedDelta ? delta_work(mixer, dtype, row_tokens)
                                              : plain_work(mixer, dtype, row_tokens);
}

/// Returns the bytes for each token that the backward pass reads.
int64_t kept_of_token(const RecurrenceConfig& mixer, at::ScalarType dtype, int64_t row_tokens) {
  const int64_t element = element_bytes(dtype), precise = precise_bytes(dtype), values = mixer.value_size();
  if (mixer.is_selective()) {
    const int64_t chunk = std::clamp<int64_t>(row_tokens, 1, kSelectiveChunk);
    const int64_t doublings = std::bit_width(static_cast<uint64_t>(chunk - 1));
    return (element + precise) * (8 * values + 3 * (mixer.step_rank + 2 * mixer.key_size())) +
           precise * mixer.state_size() * (6 + 5 * doublings);
  }
  const int64_t channels = mixer.channels(), chunk = chunk_of(row_tokens);
  if (mixer.kind == MixerKind::kGatedDelta)
    return element * 2 * channels + precise * (2 * channels + 8 * mixer.value_heads * mixer.key_dim + 8 * values +
                                               6 * mixer.value_heads * chunk);
  const int64_t convolved = element * (4 * channels + 3 * values) + precise * 3 * channels;
  if (mixer.kind == MixerKind::kShortConvolution) return convolved;
  const int64_t of_state = 4 * mixer.state_size() / chunk + 4 * mixer.key_size() + 8 * values;
  return convolved + 2 * precise * (of_state + mixer.value_heads * 5 * chunk);
}

/// Returns the largest memory of a layer's mixer, with its input.
int64_t mixer_pass_bytes(const ModelConfig& config, const PassShape& pass) {
  const RecurrenceConfig& mixer = config.recurrence;
  if (mixer.layers.empty()) return 0;
  const bool is_packed = pass.places > 0;
  // Documents of the same length run together. Their number is not known if rows are not said to be packed. For a
  // selective state space, whose chunk is shorter, the documents of the largest run may also be that short.
  const int64_t longest = pass.score_tokens > 0 ? pass.score_tokens : kMixerChunk;
  const int64_t row = !mixer.is_selective() ? longest : is_packed ? kSelectiveChunk : kMixerChunk;
  const MixerWork work = work_of(mixer, pass.dtype, row);
  return std::max(pass.tokens, pass.places) * work.of_pass + (is_packed ? pass.run_places : pass.tokens) * work.of_run +
         pass.tokens * element_bytes(pass.dtype) * 3 * config.d_model;
}

}  // namespace

int64_t layer_pass_bytes(const ModelConfig& config, const PassShape& pass) {
  const int64_t d_query = query_size(config), d_kv = config.n_kv_heads * config.attended_dim();
  const int64_t element = element_bytes(pass.dtype);
  // Hidden state, normed input and attention's output; gate, up, the activated gate and the key; experts' inputs, keys
  // with their weights, and outputs in two orders.
  const int64_t of_experts = config.experts.chosen * (3 * config.d_model + config.experts.d_ffn);
  const int64_t mlp = element * (3 * config.d_model + 4 * (config.active_ffn() + config.experts.shared) + of_experts);
  // without a fused kernel, in f32 or better
  const int64_t copies = pass.score_tokens > 0 ? 4 * copy_bytes(pass.dtype) * d_query : 0;
  // Keys and values copied for all heads, scaled copies; scores, masked and as weights. Packed documents run by run: a
  // kernel for all lengths copies nothing, and so needs less.
  const int64_t attending = element * 4 * d_query + copies +
                            3 * std::max(element, copy_bytes(pass.dtype)) * config.n_heads * pass.score_tokens;
  // Hidden state and normed input; query, keys, values and the output: for tokens, and if these are packed for their
  // places.
  const LatentConfig& latent = config.latent;  // its vectors, and heads before they are joined
  const int64_t of_latent = latent.rank == 0
                                ? 0
                                : 2 * (latent.query_rank + latent.rank + latent.turned_dim) +
                                      config.n_heads * (config.head_dim + latent.plain_dim + latent.value_dim);
  const int64_t held = element * (2 * d_query + 2 * d_kv + of_latent);
  const int64_t attention = pass.tokens * (element * 2 * config.d_model + held) + pass.places * held +
                            (pass.places > 0 ? pass.run_places : pass.tokens) * attending;
  // If the norm works on copies: the value, its square, and the scaled value.
  const int64_t norm = (2 * element + 3 * copy_bytes(pass.dtype)) * config.d_model;
  return std::max({pass.tokens * mlp, attention, pass.tokens * norm, mixer_pass_bytes(config, pass)});
}

int64_t head_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t rows) {
  // Logits, their precise copy, the log-softmax.
  const int64_t token = element_bytes(dtype) + copy_bytes(dtype) + precise_bytes(dtype);
  return rows * (token * config.vocab_size + 3 * precise_bytes(dtype) * config.d_model);
}

int64_t layer_product_bytes(const ModelConfig& config, const Stage& stage, at::ScalarType dtype, int64_t tokens) {
  int64_t most = 0;
  const auto add = [&](int64_t inputs, int64_t outputs) {
    const LinearSize size{tokens, inputs, outputs};
    most = std::max({most, linear_scratch_bytes(size, dtype, stage.device),
                     linear_gradient_scratch_bytes(size, dtype, stage.device)});
  };
  add(config.d_model, query_size(config) + 2 * config.n_kv_heads * config.head_dim);  // neighbours
  add(config.d_model, 2 * config.active_ffn());
  std::set<LayerKind> seen;
  for (int64_t layer = stage.begin; layer < stage.end; ++layer) {
    if (!seen.insert(layer_kind(config, layer)).second) continue;
    for (const WeightSpec& spec : layer_table(config, layer)) {
      if (spec.shape.size() != 2) continue;
      std::vector<int64_t> shape = spec.shape;  // of one expert's matrix, if there are several
      shape[static_cast<size_t>(spec.parts_axis())] /= spec.experts;
      add(shape[1], shape[0]);
    }
  }
  return most;
}

int64_t head_product_bytes(const ModelConfig& config, const Stage& stage, at::ScalarType dtype, int64_t rows) {
  return linear_scratch_bytes({rows, config.d_model, config.vocab_size}, dtype, stage.device);
}

int64_t rows_per_head_call(const ModelConfig& config, at::ScalarType dtype) {
  constexpr int64_t kMostBytes = int64_t{256} << 20, kMostRows = 1024;
  return std::clamp<int64_t>(kMostBytes / head_bytes(config, dtype, 1), 1, kMostRows);
}

MixerBytes mixer_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t tokens, int64_t row_tokens) {
  const RecurrenceConfig& mixer = config.recurrence;
  if (mixer.layers.empty()) return {};
  const MixerWork work = work_of(mixer, dtype, row_tokens);
  return {.working = tokens * (work.of_pass + work.of_run), .kept = tokens * kept_of_token(mixer, dtype, row_tokens)};
}

int64_t mixer_state_bytes(const ModelConfig& config, at::ScalarType dtype) {
  const RecurrenceConfig& mixer = config.recurrence;
  if (mixer.layers.empty()) return 0;
  return precise_bytes(dtype) * mixer.state_size() +
         element_bytes(dtype) * std::max<int64_t>(mixer.taps - 1, 0) * mixer.channels();
}

int64_t key_value_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t tokens) {
  const RecurrenceConfig& mixer = config.recurrence;
  const int64_t of_mixer = mixer.layers.empty() ? 0 : mixer.channels() + mixer.scalars();
  const int64_t of_attention = 2 * config.n_kv_heads * config.attended_dim();
  return tokens * (mixer.has_attention ? of_attention + of_mixer : std::max(of_attention, of_mixer)) *
         element_bytes(dtype);
}

}  // namespace lancet
