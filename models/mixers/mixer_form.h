// What is a kind of recurrent mixer's own; recurrent_mixer.cpp has what they share: rows, the convolution, what is
// kept.
#pragma once

#include <memory>

#include "blocks/layer_weights.h"
#include "chunks.h"
#include "lancet/models/model_config.h"

namespace lancet {

/// What a mixer reads of tokens: a row's, or all of a pass.
struct MixerTokens {
  Tensor channels;  ///< [..., T, C], before the convolution
  Tensor scalars;   ///< [..., T, S], as they are projected; S may be 0
};

/// A layer's mixer around its convolution. H * V: numbers of all heads' values.
class MixerForm {
 public:
  explicit MixerForm(const ModelConfig& config, const LayerWeights& weights)
      : sizes_(config.recurrence), eps_(config.norm_eps), w_(weights) {}
  MixerForm(const MixerForm&) = delete;
  MixerForm& operator=(const MixerForm&) = delete;
  virtual ~MixerForm() = default;

  virtual MixerTokens project(const Tensor& x) const = 0;
  /// Convolved rows [R, T, C] -> [R, H, T, V] from the state on. `left_out_R1T`: bool, tokens that change no state;
  /// undefined: all do.
  virtual RuleResult run(const MixerTokens& convolved, const Tensor& left_out_R1T, const Tensor& state_RHKV,
                         StateAfter after) const = 0;
  /// Results [..., H * V] -> what the output projection reads, by `x`, which the layer reads.
  virtual Tensor finished(const Tensor& mixed, const Tensor& x) const = 0;

  const RecurrenceConfig& sizes() const { return sizes_; }
  const LayerWeights& weights() const { return w_; }

 protected:
  /// [R, T, n * size] -> [R, n, T, size].
  static Tensor by_heads(const Tensor& x_RTN, int64_t size) { return x_RTN.unflatten(2, {-1, size}).transpose(1, 2); }

  const RecurrenceConfig& sizes_;
  double eps_;
  const LayerWeights& w_;
};

/// Returns the form of the configuration's kind of mixer. Both arguments outlive it.
std::unique_ptr<MixerForm> mixer_form(const ModelConfig& config, const LayerWeights& weights);

// Each kind's.
std::unique_ptr<MixerForm> delta_form(const ModelConfig& config, const LayerWeights& weights);
std::unique_ptr<MixerForm> short_convolution_form(const ModelConfig& config, const LayerWeights& weights);
std::unique_ptr<MixerForm> state_space_form(const ModelConfig& config, const LayerWeights& weights);
std::unique_ptr<MixerForm> selective_form(const ModelConfig& config, const LayerWeights& weights);

}  // namespace lancet
