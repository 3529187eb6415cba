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

/// Copies in f32 that half-precision tensors are worked on in.
int64_t copy_bytes(at::ScalarType dtype) { return element_bytes(dtype) < 4 ? 4 : 0; }

/// Whether a layer has an MLP, experts, a mixer, attention: layers of which all are equal are alike.
using LayerKind = std::array<bool, 4>;
LayerKind layer_kind(const ModelConfig& config, int64_t layer) {
  return {config.has_mlp(layer), config.has_experts(layer), config.has_recurrence(layer), config.has_attention(layer)};
}

/// A weight's matrix, as the checkpoint has it or as it is quantised: one expert's, where there are experts.
struct QuantisedSize {
  int64_t matrices = 1;
  int64_t rows = 0, columns = 0;          ///< size of a matrix, of the weight alone
  std::optional<MatrixCode> stored = {};  ///< nullopt: by the rule's quantiser

  int64_t packed(const QuantiseRule& rule) const {
    return stored ? packed_bytes(*stored, rows, columns) : quantised_bytes(*rule.quantiser, rows, columns);
  }
};

/// Returns the size of a weight that stays quantised; nullopt: it does not.
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
    // of a matrix that has other weights too all is kept for these
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
      if (quantised->stored) {  // with other weights' rows; its parts, and at most twice their bytes
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

int64_t layer_pass_bytes(const ModelConfig& config, const PassShape& pass) {
  const int64_t d_query = query_size(config), d_kv = config.n_kv_heads * config.attended_dim();
  const int64_t element = element_bytes(pass.dtype);
  // Hidden state, normed input and attention's output; gate, up, the activated gate and the key; experts' inputs, keys
  // with their weights, and outputs in two orders.
  const int64_t of_experts = config.experts.chosen * (3 * config.d_model + config.experts.d_ffn);
  const int64_t mlp = element * (3 * config.d_model + 4 * (config.active_ffn() + config.experts.shared) + of_experts);
  // Without a fused kernel in at least f32.
  const int64_t copies = pass.score_tokens > 0 ? 4 * copy_bytes(pass.dtype) * d_query : 0;
  // Keys and values spread over the heads, scaled copies; scores, masked and as weights. Of packed documents run by
  // run: a kernel for all lengths spreads nothing, and so takes less.
  const int64_t attending = element * 4 * d_query + copies +
                            3 * std::max(element, copy_bytes(pass.dtype)) * config.n_heads * pass.score_tokens;
  // Hidden state and normed input; query, keys, values and the output: of tokens, and of places where these are packed.
  const LatentConfig& latent = config.latent;  // its vectors, and heads before they are put together
  const int64_t of_latent = latent.rank == 0
                                ? 0
                                : 2 * (latent.query_rank + latent.rank + latent.turned_dim) +
                                      config.n_heads * (config.head_dim + latent.plain_dim + latent.value_dim);
  const int64_t held = element * (2 * d_query + 2 * d_kv + of_latent);
  const int64_t attention = pass.tokens * (element * 2 * config.d_model + held) + pass.places * held +
                            (pass.places > 0 ? pass.run_places : pass.tokens) * attending;
  // The norm, where it works on copies: the value, its square, and scaled.
  const int64_t norm = (2 * element + 3 * copy_bytes(pass.dtype)) * config.d_model;
  const int64_t places = std::max(pass.tokens, pass.places);
  const int64_t mixer =
      mixer_bytes(config, pass.dtype, places, kMixerChunk).working + pass.tokens * element * 3 * config.d_model;
  return std::max({pass.tokens * mlp, attention, pass.tokens * norm, config.recurrence.layers.empty() ? 0 : mixer});
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
      std::vector<int64_t> shape = spec.shape;  // of one expert's matrix, where there are several
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

namespace {

/// A convolution's, and a state space's: keys and queries are of all heads together, and each chunk has a state.
MixerBytes plain_mixer_bytes(const RecurrenceConfig& mixer, at::ScalarType dtype, int64_t tokens, int64_t row_tokens) {
  const int64_t element = element_bytes(dtype), precise = precise_bytes(dtype);
  const int64_t chunk = std::max<int64_t>(std::min(row_tokens, kMixerChunk), 1);
  const int64_t gates = element * 3 * mixer.value_size();
  const int64_t channels = element * 4 * mixer.channels() + precise * 3 * mixer.channels() + gates;
  if (mixer.kind == MixerKind::kShortConvolution) return {tokens * channels, tokens * channels};
  const int64_t of_state = 4 * mixer.state_size() / chunk + 4 * mixer.key_size() + 8 * mixer.value_size();
  const int64_t of_heads = precise * (of_state + mixer.value_heads * 5 * chunk);
  return {.working = tokens * (channels + of_heads), .kept = tokens * (channels + 2 * of_heads)};
}

/// A selective space's: each token has its channels' states, what they fade by and what it adds, at each doubling of
/// the spans that are summed.
MixerBytes selective_bytes(const RecurrenceConfig& mixer, at::ScalarType dtype, int64_t tokens, int64_t row_tokens) {
  const int64_t element = element_bytes(dtype), precise = precise_bytes(dtype), values = mixer.value_size();
  const int64_t chunk = std::clamp<int64_t>(row_tokens, 1, kSelectiveChunk);
  const int64_t doublings = std::bit_width(static_cast<uint64_t>(chunk - 1));
  const int64_t channels =
      element * 8 * values + precise * 8 * values + (element + precise) * 3 * (mixer.step_rank + 2 * mixer.key_size());
  const int64_t of_states = precise * mixer.state_size();
  return {
      .working = tokens * (channels + of_states) + tokens / std::max<int64_t>(row_tokens, 1) * chunk * 6 * of_states,
      .kept = tokens * (channels + of_states * (6 + 5 * doublings))};
}

}  // namespace

MixerBytes mixer_bytes(const ModelConfig& config, at::ScalarType dtype, int64_t tokens, int64_t row_tokens) {
  const RecurrenceConfig& mixer = config.recurrence;
  if (mixer.layers.empty()) return {};
  const int64_t element = element_bytes(dtype), precise = precise_bytes(dtype);
  if (mixer.is_selective()) return selective_bytes(mixer, dtype, tokens, row_tokens);
  if (mixer.kind != MixerKind::kGatedDelta) return plain_mixer_bytes(mixer, dtype, tokens, row_tokens);
  const int64_t heads_keys = mixer.value_heads * mixer.key_dim, values = mixer.value_size();
  const int64_t squares = mixer.value_heads * std::min(row_tokens, kMixerChunk);
  // Channels as they are projected, joined and behind the convolution, whose sum is precise; queries and keys, as they
  // are, of unit length and of every head; values and what they become; products of a chunk's tokens.
  const int64_t channels = element * 4 * mixer.channels() + precise * 3 * mixer.channels();
  const int64_t of_heads = precise * (6 * heads_keys + 6 * values + 5 * squares);
  return {.working = tokens * (channels + of_heads),
          .kept = tokens * (element * 2 * mixer.channels() +
                            precise * (2 * mixer.channels() + 8 * heads_keys + 8 * values + 6 * squares))};
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
