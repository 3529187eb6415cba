#include "lancet/checkpoint/checkpoint.h"
#include "protocols.h"

namespace lancet {

std::span<const ProtocolRow> protocol_table() {
  static constexpr ProtocolRow kProtocols[] = {
      kEfficacyProtocol,   kParaphraseProtocol,  kSpecificityProtocol, kSubjectProtocol,
      kGenerationProtocol, kDistractedProtocol,  kChatProtocol,        kThinkingProtocol,
      kBeliefProtocol,     kCounterFactProtocol, kZsreProtocol,        kEasyEditProtocol,
      kMquakeProtocol,     kUltraEditProtocol,   kJudgeProtocol,       kLongFormProtocol};
  return kProtocols;
}

ChatTemplate find_template(const ChatSource& source) {
  return source.by_hand.empty() ? ChatTemplate::of(Checkpoint::open(source.model).folder())
                                : ChatTemplate::by_hand(source.by_hand);
}

const ProtocolRow* find_protocol_of(std::string_view metric) {
  for (const ProtocolRow& row : protocol_table())
    if (is_metric_of(row.metrics, metric)) return &row;
  return nullptr;
}

std::vector<std::string> without_comparing(std::vector<std::string> protocols) {
  for (const ProtocolRow& row : protocol_table())
    if (row.compares) std::erase(protocols, row.name);
  return protocols;
}

}  // namespace lancet
