#include "delta_mixer.h"

#include <torch/types.h>

#include "delta_rule.h"
#include "lancet/kernels/decoder_ops.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr double kLeastSquare = 1e-6;  // of a query's or key's length

/// What the mixer reads of tokens: a row's, or all of a pass.
struct MixerTokens {
  Tensor channels;  ///< [..., T, queries, keys and values], before the convolution
  Tensor scalars;   ///< [..., T, 2 * H]: rates and decays of the heads, as they are projected
};

/// A layer's mixer on one pass.
class MixerPass {
 public:
  MixerPass(const ModelConfig& config, const LayerWeights& weights)
      : sizes_(config.recurrence), eps_(config.norm_eps), w_(weights) {}

  MixerTokens project(const Tensor& x) const {
    return {torch::cat({w_.linear(x, kMixerQuery), w_.linear(x, kMixerKey), w_.linear(x, kMixerValue)}, -1),
            torch::cat({w_.linear(x, kMixerRate), w_.linear(x, kMixerDecay)}, -1)};
  }

  MixerState first_state(int64_t n_rows, const Tensor& like) const {
    return {{}, torch::zeros({n_rows, sizes_.taps - 1, sizes_.channels()}, like.options())};
  }

  /// Rows [R, T, ...] from `before` on -> [R, T, H * V] in the type of the tokens; `after`, where it is not null,
  /// becomes the state behind each row's token `length_R1` - 1, or behind the last.
  Tensor run(const MixerTokens& rows, const MixerState& before, const Tensor& length_R1, MixerState* after) const {
    const Tensor joined_RXC = torch::cat({before.tail_RXC, rows.channels}, 1);
    DeltaTokens tokens = delta_tokens(convolved(joined_RXC, rows.channels.size(1)), rows.scalars);
    if (after != nullptr && length_R1.defined()) {
      const Tensor is_past_R1T = (torch::arange(rows.channels.size(1), length_R1.options()) >= length_R1).unsqueeze(1);
      tokens.rate_RHT = tokens.rate_RHT.masked_fill(is_past_R1T, 0);
      tokens.decay_RHT = tokens.decay_RHT.masked_fill(is_past_R1T, 0);
    }
    const DeltaResult result =
        delta_rule(tokens, before.state_RHKV, after != nullptr ? StateAfter::kGiven : StateAfter::kNone);
    if (after != nullptr) *after = {result.state_RHKV, tail_of(joined_RXC, length_R1)};
    return result.out_RHTV.transpose(1, 2).flatten(2).to(rows.channels.scalar_type());
  }

  /// Results [..., H * V] normed by head, times the gate's activation of what the layer reads.
  Tensor gated(const Tensor& mixed, const Tensor& x) const {
    const Tensor normed = rms_norm(mixed.unflatten(-1, {-1, sizes_.value_dim}), w_[kMixerNorm], eps_).view_as(mixed);
    const Tensor gate = w_.linear(x, kMixerGate);
    return (normed * at::silu(gate.to(precise_type(gate)))).to(mixed.scalar_type());
  }

 private:
  /// Each channel by itself: [R, X + T, C] -> [R, T, C].
  Tensor convolved(const Tensor& joined_RXC, int64_t tokens) const {
    const at::ScalarType precise = precise_type(joined_RXC);
    const Tensor taps_CX = w_[kMixerTaps].view({-1, sizes_.taps}).to(precise), x = joined_RXC.to(precise);
    Tensor sum;
    for (int64_t tap = 0; tap < sizes_.taps; ++tap) {
      const Tensor term = x.narrow(1, tap, tokens) * taps_CX.select(1, tap);
      sum = sum.defined() ? sum + term : term;
    }
    return at::silu(sum.to(joined_RXC.scalar_type()));
  }

  DeltaTokens delta_tokens(const Tensor& channels_RTC, const Tensor& scalars_RT2H) const {
    const at::ScalarType precise = precise_type(channels_RTC);
    const std::vector<Tensor> parts =
        channels_RTC.split_with_sizes({sizes_.key_size(), sizes_.key_size(), sizes_.value_size()}, 2);
    const auto heads = [&](const Tensor& part, int64_t size) {
      return part.unflatten(2, {-1, size}).transpose(1, 2).to(precise);
    };
    const auto unit = [&](const Tensor& part) {
      const Tensor x_RHTK = heads(part, sizes_.key_dim);
      const Tensor each = x_RHTK * (x_RHTK.square().sum(3, /*keepdim=*/true) + kLeastSquare).rsqrt();
      return each.repeat_interleave(sizes_.value_heads / sizes_.key_heads, 1);
    };
    const std::vector<Tensor> scalars = scalars_RT2H.transpose(1, 2).chunk(2, 1);
    const auto of_heads = [&](WeightKind kind) { return w_[kind].to(precise).unsqueeze(1); };
    return {.query_RHTK = unit(parts[0]) / std::sqrt(static_cast<double>(sizes_.key_dim)),
            .key_RHTK = unit(parts[1]),
            .value_RHTV = heads(parts[2], sizes_.value_dim),
            .rate_RHT = scalars[0].sigmoid().to(precise),
            .decay_RHT =
                -of_heads(kMixerDecayScale).exp() * at::softplus(scalars[1].to(precise) + of_heads(kMixerDecayBias))};
  }

  /// The last tokens that a later convolution sees.
  Tensor tail_of(const Tensor& joined_RXC, const Tensor& length_R1) const {
    const int64_t n = sizes_.taps - 1;
    if (!length_R1.defined()) return joined_RXC.narrow(1, joined_RXC.size(1) - n, n);
    const Tensor place_RX1 = (length_R1 + torch::arange(n, length_R1.options())).unsqueeze(2);
    return joined_RXC.gather(1, place_RX1.expand({-1, -1, joined_RXC.size(2)}));
  }

  const RecurrenceConfig& sizes_;
  double eps_;
  const LayerWeights& w_;
};

/// The state behind what rows have run before, which is what each token was: of texts shorter than a head's numbers
/// that takes less memory than states, and rows that begin alike share it. Without gradients: these are constants.
MixerState state_behind(const MixerPass& pass, const KeyValuePair& earlier, const MixerRows& rows) {
  const torch::NoGradGuard no_grad;
  const auto taken = [&](const Tensor& x_B1PC) {
    const Tensor flat_PC = x_B1PC.squeeze(1).flatten(0, 1);
    return flat_PC.index_select(0, rows.earlier_RP.flatten())
        .unflatten(0, rows.earlier_RP.sizes())
        .masked_fill(rows.lacks_RP1, 0);  // no key, no value: nothing is learned
  };
  const MixerTokens tokens{taken(earlier.key), taken(earlier.value)};
  MixerState state;
  pass.run(tokens, pass.first_state(rows.earlier_RP.size(0), tokens.channels), {}, &state);
  return state;
}

Tensor rows_of(const Tensor& x_ND, const MixerRows& rows, const DocumentRun& run, int64_t begin) {
  const int64_t places = run.documents * run.tokens;
  const Tensor own = rows.token_X.defined() ? x_ND.index_select(0, rows.token_X.narrow(0, begin, places))
                                            : x_ND.narrow(0, begin, places);
  return own.unflatten(0, {run.documents, run.tokens});
}

/// What is said of tokens goes to `record`: as keys and values, of one head.
void record_tokens(const MixerTokens& tokens_BT, int64_t layer, KeyValues& record) {
  record.record(layer, {tokens_BT.channels.unsqueeze(2), tokens_BT.scalars.unsqueeze(2)});
}

}  // namespace

Tensor delta_mixer(const ModelConfig& config, const LayerWeights& weights, const AttentionInputs& inputs,
                   const SequenceInfo& sequence, int64_t layer, const Tensor& x_BTD) {
  const MixerPass pass(config, weights);
  const MixerRows& rows = *inputs.mixer;
  const MixerTokens tokens = pass.project(x_BTD);
  const Tensor channels_NC = tokens.channels.flatten(0, 1), scalars_N2H = tokens.scalars.flatten(0, 1);
  KeyValues* record = sequence.record;
  const bool has_prefix = sequence.prefix != nullptr && !sequence.prefix->empty();
  const bool keeps_ends = record != nullptr && record->keeps() == MixerMemory::kEnds;
  std::vector<Tensor> parts;
  MixerState after;
  int64_t begin = 0;
  for (const DocumentRun& run : rows.runs) {
    MixerState before = pass.first_state(run.documents, channels_NC);
    if (has_prefix && sequence.prefix->keeps() == MixerMemory::kEnds)
      before = sequence.prefix->mixer_state(layer);
    else if (rows.earlier_RP.defined())
      before = state_behind(pass, sequence.prefix->layer(layer), rows);
    const MixerTokens own{rows_of(channels_NC, rows, run, begin), rows_of(scalars_N2H, rows, run, begin)};
    parts.push_back(pass.run(own, before, rows.length_R1, keeps_ends ? &after : nullptr).flatten(0, 1));
    begin += run.documents * run.tokens;
  }
  if (keeps_ends)
    record->record_state(layer, std::move(after));
  else if (record != nullptr)
    record_tokens(tokens, layer, *record);
  Tensor mixed_ND = torch::cat(parts);
  if (rows.place_N.defined()) mixed_ND = mixed_ND.index_select(0, rows.place_N);
  const Tensor mixed_BTD = mixed_ND.unflatten(0, {x_BTD.size(0), x_BTD.size(1)});
  return pass.gated(take_places(mixed_BTD, inputs.outputs), take_places(x_BTD, inputs.outputs));
}

}  // namespace lancet
