#include <algorithm>

#include "lancet/checkpoint/checkpoint.h"
#include "protocols.h"

namespace lancet {

std::span<const ProtocolRow> protocol_table() {
  static constexpr ProtocolRow kProtocols[] = {kEfficacyProtocol,    kParaphraseProtocol, kSpecificityProtocol,
                                               kGenerationProtocol,  kDistractedProtocol, kChatProtocol,
                                               kCounterFactProtocol, kZsreProtocol,       kEasyEditProtocol,
                                               kMquakeProtocol,      kUltraEditProtocol};
  return kProtocols;
}

ChatTemplate ChatSource::find() const {
  return by_hand.empty() ? ChatTemplate::of(Checkpoint::open(model).folder()) : ChatTemplate::by_hand(by_hand);
}

const ProtocolRow* find_protocol_of(std::string_view metric) {
  const auto matches = [metric](std::string_view name) {
    return name.ends_with('*') ? metric.starts_with(name.substr(0, name.size() - 1)) : metric == name;
  };
  for (const ProtocolRow& row : protocol_table())
    if (std::any_of(row.metrics.begin(), row.metrics.end(), matches)) return &row;
  return nullptr;
}

}  // namespace lancet
