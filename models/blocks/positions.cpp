#include "positions.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/kernels/decoder_ops.h"
#include "lancet/runtime/send.h"

namespace lancet {
namespace {

/// Llama 3.1's stretching: long wavelengths divided by the factor, short ones kept, a linear passage in between.
Tensor stretch_llama3(const Tensor& frequencies, const RopeConfig& rope) {
  const double original = static_cast<double>(rope.original_max_positions);
  const double low_wavelength = original / rope.low_freq_factor;
  const double high_wavelength = original / rope.high_freq_factor;
  const Tensor wavelengths = 2 * M_PI / frequencies;
  const Tensor smooth =
      (original / wavelengths - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  const Tensor passage = (1 - smooth) * (frequencies / rope.factor) + smooth * frequencies;
  return torch::where(wavelengths > low_wavelength, frequencies / rope.factor,
                      torch::where(wavelengths < high_wavelength, frequencies, passage));
}

/// Returns which pair of `rope.dim` numbers turns so often within the original positions, as a fraction.
double pair_of_turns(const RopeConfig& rope, double turns) {
  const double wavelength = static_cast<double>(rope.original_max_positions) / (turns * 2 * M_PI);
  return static_cast<double>(rope.dim) * std::log(wavelength) / (2 * std::log(rope.theta));
}

/// YaRN's: the passage goes from the pair of `fast_turns` to that of `slow_turns`.
Tensor stretch_yarn(const Tensor& wavelengths, const RopeConfig& rope) {
  double begin = pair_of_turns(rope, rope.fast_turns), end = pair_of_turns(rope, rope.slow_turns);
  if (rope.passes_at_whole_pairs) {
    begin = std::floor(begin);
    end = std::ceil(end);
  }
  begin = std::max(begin, 0.0);
  end = std::min(end, static_cast<double>(rope.dim - 1));  // transformers': there are only half as many pairs
  if (begin == end) end += 0.001;
  const Tensor pairs = torch::arange(rope.dim / 2, wavelengths.options());
  const Tensor kept = 1 - ((pairs - begin) / (end - begin)).clamp(0, 1);
  return 1.0 / (rope.factor * wavelengths) * (1 - kept) + 1.0 / wavelengths * kept;
}

/// Pairs (2 i, 2 i + 1) of x [..., C] with tables [..., C / 2] of each pair.
Tensor turn_adjacent(const Tensor& x_BTHC, const RotaryTable& table) {
  const Tensor a = x_BTHC.slice(-1, 0, at::nullopt, 2), b = x_BTHC.slice(-1, 1, at::nullopt, 2);
  const int64_t half = a.size(-1);
  const Tensor cos = table.cos.narrow(-1, 0, half), sin = table.sin.narrow(-1, 0, half);
  return torch::stack({a * cos - b * sin, b * cos + a * sin}, -1).flatten(-2);
}

}  // namespace

RopeFrequencies RopeFrequencies::to(at::Device device) const {
  const auto move = [&](const Tensor& x) { return x.defined() ? x.to(device) : x; };
  return {move(usual), move(beyond)};
}

RopeFrequencies rope_frequencies(const RopeConfig& rope, RopePrecision precision) {
  if (rope.dim == 0) return {};
  // The same operations in the same precision as transformers: at high positions a last-bit difference would grow.
  const auto type = precision == RopePrecision::kF64 ? torch::kDouble : torch::kFloat;
  const Tensor exponents = torch::arange(0, rope.dim, 2, torch::kLong).to(type) / static_cast<double>(rope.dim);
  const Tensor wavelengths = torch::pow(rope.theta, exponents);
  const auto divided = [&](const std::vector<double>& factors) {
    return 1.0 / (torch::tensor(factors, torch::kDouble).to(type) * wavelengths);
  };
  switch (rope.scaling) {
    case RopeConfig::Scaling::kNone:
    case RopeConfig::Scaling::kDynamic:
      return {1.0 / wavelengths, {}};
    case RopeConfig::Scaling::kLinear:
      return {1.0 / wavelengths / rope.factor, {}};
    case RopeConfig::Scaling::kLlama3:
      return {stretch_llama3(1.0 / wavelengths, rope), {}};
    case RopeConfig::Scaling::kLongRope:
      return {divided(rope.short_factors), divided(rope.long_factors)};
    case RopeConfig::Scaling::kYarn:
      return {stretch_yarn(wavelengths, rope), {}};
  }
  return {};
}

Tensor frequencies_of_rows(const RopeConfig& rope, const RopeFrequencies& frequencies, const SequenceInfo& sequence) {
  if (!frequencies.beyond.defined() || sequence.positions_BT.numel() == 0) return frequencies.usual;
  const Tensor is_beyond = positions_reached(sequence) > rope.original_max_positions;
  if (is_beyond.all().item<bool>()) return frequencies.beyond;
  if (!is_beyond.any().item<bool>()) return frequencies.usual;
  return torch::where(sent_to(frequencies.usual.device(), is_beyond.unsqueeze(2)), frequencies.beyond,
                      frequencies.usual);
}

RotaryTable rotary_table(const RopeConfig& rope, const RopeFrequencies& frequencies, const SequenceInfo& sequence,
                         at::ScalarType dtype) {
  if (!frequencies.usual.defined()) return {};
  const Tensor used = frequencies_of_rows(rope, frequencies, sequence);
  const Tensor angles = sent_to(used.device(), sequence.positions_BT).to(used.scalar_type()).unsqueeze(2) * used;
  const Tensor forward = torch::cat({angles, angles}, 2).unsqueeze(2);
  const Tensor both = rope.is_backwards ? -forward : forward;
  if (rope.amplitude == 1) return {both.cos().to(dtype), both.sin().to(dtype)};
  return {(both.cos() * rope.amplitude).to(dtype), (both.sin() * rope.amplitude).to(dtype)};
}

Tensor turned(const RopeConfig& rope, const Tensor& x_BTHC, const RotaryTable& table) {
  if (!table.cos.defined()) return x_BTHC;
  const bool is_whole = rope.dim == x_BTHC.size(3);
  const Tensor part = is_whole ? x_BTHC : x_BTHC.narrow(3, 0, rope.dim);
  const Tensor turned = rope.pairs == RopeConfig::Pairs::kAdjacent ? turn_adjacent(part, table)
                                                                   : rotate_pairs(part, table.cos, table.sin);
  if (is_whole) return turned;
  return torch::cat({turned, x_BTHC.narrow(3, rope.dim, x_BTHC.size(3) - rope.dim)}, 3);
}

}  // namespace lancet
