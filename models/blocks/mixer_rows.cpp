#include "mixer_rows.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/runtime/send.h"

namespace lancet {
namespace {

/// Adds each row's earlier tokens, by their places in the prefix.
void add_earlier(const std::vector<std::vector<int64_t>>& earlier, at::Device device, MixerRows& rows) {
  size_t most = 0;
  for (const std::vector<int64_t>& row : earlier) most = std::max(most, row.size());
  if (most == 0) return;
  std::vector<int64_t> places;
  for (const std::vector<int64_t>& row : earlier) {
    places.insert(places.end(), most - row.size(), -1);
    places.insert(places.end(), row.begin(), row.end());
  }
  const Tensor place_RP = torch::tensor(places, torch::kLong).view({std::ssize(earlier), -1});
  rows.earlier_RP = sent_to(device, place_RP.clamp_min(0));
  rows.lacks_RP1 = sent_to(device, (place_RP < 0).unsqueeze(2));
}

/// Pads rows on the right to the longest one. What follows a row's last token has no effect on earlier tokens.
void add_ragged(const RaggedLayout& layout, at::Device device, MixerRows& rows) {
  const int64_t widest = *std::ranges::max_element(layout.tokens);
  std::vector<int64_t> tokens, places;
  int64_t first = 0;
  for (size_t row = 0; row < layout.tokens.size(); ++row) {
    for (int64_t t = 0; t < widest; ++t) {
      const bool is_own = t < layout.tokens[row];
      if (is_own) places.push_back(std::ssize(tokens));
      tokens.push_back(is_own ? first + t : 0);
    }
    first += layout.tokens[row];
  }
  rows.runs = {{std::ssize(layout.tokens), widest}};
  rows.token_X = to_index(tokens, device);
  rows.place_N = to_index(places, device);
}

std::vector<std::vector<int64_t>> earlier_of_padded(const Tensor& valid_BP) {
  std::vector<std::vector<int64_t>> earlier(static_cast<size_t>(valid_BP.size(0)));
  const Tensor valid = valid_BP.contiguous();
  const bool* is_valid = valid.const_data_ptr<bool>();
  for (int64_t place = 0; place < valid.numel(); ++place)
    if (is_valid[place]) earlier[static_cast<size_t>(place / valid.size(1))].push_back(place);
  return earlier;
}

}  // namespace

MixerRows mixer_rows(const SequenceInfo& sequence, at::Device device) {
  MixerRows rows;
  const bool has_prefix = sequence.prefix != nullptr && !sequence.prefix->empty();
  if (sequence.ragged != nullptr) {
    add_ragged(*sequence.ragged, device, rows);
    if (has_prefix) add_earlier(sequence.ragged->earlier, device, rows);
    return rows;
  }
  if (!sequence.packed.empty()) {
    rows.runs = sequence.packed;
    if (sequence.places_P.defined()) {
      rows.token_X = sent_to(device, sequence.places_P);
      rows.place_N = sent_to(device, sequence.first_T);
    }
    return rows;
  }
  rows.runs = {{sequence.positions_BT.size(0), sequence.positions_BT.size(1)}};
  rows.length_R1 = sent_to(device, torch::tensor(sequence.lengths, torch::kLong).unsqueeze(1));
  if (has_prefix && sequence.prefix->keeps() == MixerMemory::kTokens)
    add_earlier(earlier_of_padded(sequence.prefix->valid_BP()), device, rows);
  return rows;
}

}  // namespace lancet
