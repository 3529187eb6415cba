// The parts in which kinds of recurrent mixers differ. recurrent_mixer.cpp has what they share: rows, the convolution,
// kept inputs.
#pragma once

#include <memory>

#include "blocks/layer_weights.h"
#include "chunks.h"
#include "lancet/models/model_config.h"

namespace lancet {

/// A mixer's inputs for the tokens of a row, or of the whole pass.
struct MixerTokens {
  Tensor channels;  ///< [..., T, C], before the convolution
  Tensor scalars;   ///< [..., T, S], after the projection; S may be 0
};

/// A layer's mixer without its convolution. H * V: the numbers of all heads' values.
class MixerForm {
 public:
  explicit MixerForm(const ModelConfig& config, const LayerWeights& weights)
      : sizes_(config.recurrence), eps_(config.norm_eps), w_(weights) {}
  MixerForm(const MixerForm&) = delete;
  MixerForm& operator=(const MixerForm&) = delete;
  virtual ~MixerForm() = default;

  virtual MixerTokens project(const Tensor& x) const = 0;
  /// Runs convolved rows [R, T, C] -> [R, H, T, V], beginning with the state. `left_out_R1T`: bool, tokens that do not
  /// change the state; undefined: all tokens do.
  virtual RuleResult run(const MixerTokens& convolved, const Tensor& left_out_R1T, const Tensor& state_RHKV,
                         StateAfter after) const = 0;
  /// Turns results [..., H * V] into the input of the output projection. `x`: the layer's input.
  virtual Tensor finished(const Tensor& mixed, const Tensor& x) const = 0;

  const RecurrenceConfig& sizes() const { return sizes_; }
  const LayerWeights& weights() const { return w_; }

 protected:
  /// Returns [R, T, n * size] -> [R, n, T, size].
  static Tensor by_heads(const Tensor& x_RTN, int64_t size) { return x_RTN.unflatten(2, {-1, size}).transpose(1, 2); }

  const RecurrenceConfig& sizes_;
  double eps_;
  const LayerWeights& w_;
};

/// Returns the form of the configuration's kind of mixer. Both arguments must outlive it.
std::unique_ptr<MixerForm> mixer_form(const ModelConfig& config, const LayerWeights& weights);

// The forms of the kinds.
std::unique_ptr<MixerForm> delta_form(const ModelConfig& config, const LayerWeights& weights);
std::unique_ptr<MixerForm> short_convolution_form(const ModelConfig& config, const LayerWeights& weights);
std::unique_ptr<MixerForm> state_space_form(const ModelConfig& config, const LayerWeights& weights);
std::unique_ptr<MixerForm> selective_form(const ModelConfig& config, const LayerWeights& weights);

}  // namespace lancet
