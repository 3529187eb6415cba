#include "recurrent_mixer.h"

#include <torch/types.h>

#include "lancet/kernels/decoder_ops.h"
#include "mixer_form.h"

namespace lancet {
namespace {

using enum WeightKind;

MixerState empty_state(const MixerForm& form, int64_t n_rows, const Tensor& like) {
  return {{}, torch::zeros({n_rows, form.sizes().taps - 1, form.sizes().channels()}, like.options())};
}

/// Convolves each channel separately: [R, X + T, C] -> [R, T, C].
Tensor convolved(const MixerForm& form, const Tensor& joined_RXC, int64_t tokens) {
  const int64_t taps = form.sizes().taps;
  const at::ScalarType precise = precise_type(joined_RXC);
  const Tensor taps_CX = form.weights()[kMixerTaps].view({-1, taps}).to(precise), x = joined_RXC.to(precise);
  const Tensor& bias = form.weights()[kMixerTapsBias];
  Tensor sum = bias.defined() ? bias.to(precise) : Tensor();
  for (int64_t tap = 0; tap < taps; ++tap) {
    const Tensor term = x.narrow(1, tap, tokens) * taps_CX.select(1, tap);
    sum = sum.defined() ? sum + term : term;
  }
  return sum.to(joined_RXC.scalar_type());
}

/// Returns the last tokens, which a later convolution reads.
Tensor tail_of(const MixerForm& form, const Tensor& joined_RXC, const Tensor& length_R1) {
  const int64_t n = form.sizes().taps - 1;
  if (!length_R1.defined()) return joined_RXC.narrow(1, joined_RXC.size(1) - n, n);
  const Tensor place_RX1 = (length_R1 + torch::arange(n, length_R1.options())).unsqueeze(2);
  return joined_RXC.gather(1, place_RX1.expand({-1, -1, joined_RXC.size(2)}));
}

/// The places of rows that are padding; all undefined if there is no padding.
struct Padding {
  Tensor left_out_R1T;  ///< tokens that do not change the state, before or after a row's own tokens
  Tensor length_R1;     ///< number of own tokens of rows that are padded at the end
};

/// Returns the padding of rows with `length_R1` tokens of `n`.
Padding padding_behind(const Tensor& length_R1, int64_t n) {
  if (!length_R1.defined()) return {};
  return {(torch::arange(n, length_R1.options()) >= length_R1).unsqueeze(1), length_R1};
}

/// Runs rows [R, T, ...], beginning with `before`: [R, T, H * V] in the type of the tokens. If `after` is not null, it
/// gets the state after each row's last own token.
Tensor run_rows(const MixerForm& form, const MixerTokens& rows, const MixerState& before, const Padding& padding,
                MixerState* after) {
  const Tensor joined_RXC = torch::cat({before.tail_RXC, rows.channels}, 1);
  const MixerTokens tokens{convolved(form, joined_RXC, rows.channels.size(1)), rows.scalars};
  const RuleResult result = form.run(tokens, padding.left_out_R1T, before.state_RHKV,
                                     after != nullptr ? StateAfter::kGiven : StateAfter::kNone);
  if (after != nullptr) *after = {result.state_RHKV, tail_of(form, joined_RXC, padding.length_R1)};
  return result.out_RHTV.transpose(1, 2).flatten(2).to(rows.channels.scalar_type());
}

/// Returns the state after the tokens that rows have run before, computed from the kept inputs of these tokens. For
/// texts shorter than a head's numbers these inputs take less memory than states, and rows with a common beginning
/// share them. Without gradients, because they are constants.
MixerState state_behind(const MixerForm& form, const KeyValuePair& earlier, const MixerRows& rows) {
  const torch::NoGradGuard no_grad;
  const auto taken = [&](const Tensor& x_B1PC) {
    const Tensor flat_PC = x_B1PC.squeeze(1).flatten(0, 1);
    return flat_PC.index_select(0, rows.earlier_RP.flatten())
        .unflatten(0, rows.earlier_RP.sizes())
        .masked_fill(rows.lacks_RP1, 0);  // before a row's first token there is nothing to convolve
  };
  const MixerTokens tokens{taken(earlier.key), taken(earlier.value)};
  MixerState state;
  run_rows(form, tokens, empty_state(form, rows.earlier_RP.size(0), tokens.channels),
           {.left_out_R1T = rows.lacks_RP1.transpose(1, 2), .length_R1 = {}}, &state);
  return state;
}

Tensor rows_of(const Tensor& x_ND, const MixerRows& rows, const DocumentRun& run, int64_t begin) {
  const int64_t places = run.documents * run.tokens;
  const Tensor own = rows.token_X.defined() ? x_ND.index_select(0, rows.token_X.narrow(0, begin, places))
                                            : x_ND.narrow(0, begin, places);
  return own.unflatten(0, {run.documents, run.tokens});
}

}  // namespace

std::unique_ptr<MixerForm> mixer_form(const ModelConfig& config, const LayerWeights& weights) {
  switch (config.recurrence.kind) {
    case MixerKind::kGatedDelta:
      return delta_form(config, weights);
    case MixerKind::kShortConvolution:
      return short_convolution_form(config, weights);
    case MixerKind::kStateSpace:
      return state_space_form(config, weights);
    case MixerKind::kSelectiveSpace:
      return selective_form(config, weights);
  }
  return nullptr;
}

Tensor recurrent_mixer(const LayerContext& context, const Tensor& x_BTD) {
  const auto& [config, weights, inputs, sequence, hooks, layer] = context;
  const std::unique_ptr<MixerForm> form = mixer_form(config, weights);
  const MixerRows& rows = *inputs.mixer;
  const MixerTokens tokens = form->project(x_BTD);
  const Tensor channels_NC = tokens.channels.flatten(0, 1), scalars_NS = tokens.scalars.flatten(0, 1);
  KeyValues* record = sequence.record;
  const bool has_prefix = sequence.prefix != nullptr && !sequence.prefix->empty();
  const bool keeps_ends = record != nullptr && record->keeps() == MixerMemory::kEnds;
  std::vector<Tensor> parts;
  MixerState after;
  int64_t begin = 0;
  for (const DocumentRun& run : rows.runs) {
    MixerState before = empty_state(*form, run.documents, channels_NC);
    if (has_prefix && sequence.prefix->keeps() == MixerMemory::kEnds)
      before = sequence.prefix->mixer_state(layer);
    else if (rows.earlier_RP.defined())
      before = state_behind(*form, sequence.prefix->mixer_tokens(layer), rows);
    const MixerTokens own{rows_of(channels_NC, rows, run, begin), rows_of(scalars_NS, rows, run, begin)};
    const Padding padding = keeps_ends ? padding_behind(rows.length_R1, run.tokens) : Padding();
    const Tensor mixed = run_rows(*form, own, before, padding, keeps_ends ? &after : nullptr);
    parts.push_back(mixed.flatten(0, 1));
    begin += run.documents * run.tokens;
  }
  if (keeps_ends)
    record->record_state(layer, std::move(after));
  else if (record != nullptr)
    record->record_tokens(layer, {tokens.channels.unsqueeze(2), tokens.scalars.unsqueeze(2)});
  Tensor mixed_ND = torch::cat(parts);
  if (rows.place_N.defined()) mixed_ND = mixed_ND.index_select(0, rows.place_N);
  const Tensor mixed_BTD = mixed_ND.unflatten(0, {x_BTD.size(0), x_BTD.size(1)});
  return form->finished(take_places(mixed_BTD, inputs.outputs), take_places(x_BTD, inputs.outputs));
}

}  // namespace lancet
