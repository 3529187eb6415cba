#include "json_components.h"

namespace lancet {

std::vector<DecoderStep> parse_decoder(const JsonNode& root) {
  std::vector<DecoderStep> steps;
  for (const JsonNode& node : components(root, "decoder", "decoders")) {
    const std::string& type = node.at("type").text();
    if (type == "Replace") {
      steps.emplace_back(parse_replace(node));
    } else if (type == "ByteFallback") {
      node.require_keys({"type"});
      steps.emplace_back(ByteFallbackStep{});
    } else if (type == "Fuse") {
      node.require_keys({"type"});
      steps.emplace_back(FuseStep{});
    } else if (type == "Strip") {
      node.require_keys({"type", "content", "start", "stop"});
      steps.emplace_back(
          StripStep{one_character(node.at("content")), node.at("start").integer(), node.at("stop").integer()});
    } else if (type == "Metaspace") {
      steps.emplace_back(parse_metaspace(node).step);
    } else if (type == "ByteLevel") {
      require_byte_level_keys(node);
      steps.emplace_back(ReadBytesStep{});
    } else if (type == "BPEDecoder") {
      node.require_keys({"type", "suffix"});
      if (node.at("suffix").text().empty()) node.at("suffix").fail("an empty suffix");
      steps.emplace_back(WordEndStep{node.at("suffix").text()});
    } else if (type == "WordPiece") {
      node.require_keys({"type", "prefix", "cleanup"});
      steps.emplace_back(WordPieceStep{node.at("prefix").text(), node.at("cleanup").boolean()});
    } else {
      fail_type(node, "Sequence, Replace, ByteFallback, Fuse, Strip, Metaspace, ByteLevel, BPEDecoder, WordPiece");
    }
  }
  return steps;
}

}  // namespace lancet
