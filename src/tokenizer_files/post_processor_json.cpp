#include "json_components.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// The special tokens that a post-processor puts around a text.
struct SpecialFrame {
  std::vector<TokenId> before;
  std::vector<TokenId> behind;
};

void append_special(const JsonNode& name, const JsonNode& special_tokens, std::vector<TokenId>& out) {
  for (const JsonNode& id : special_tokens.at(name.text()).at("ids").items()) out.push_back(id.integer());
}

/// Reads the template for a single text. The one for pairs is never used.
SpecialFrame parse_template(const JsonNode& node) {
  node.require_keys({"type", "single", "pair", "special_tokens"});
  SpecialFrame frame;
  bool seen_text = false;
  for (const JsonNode& piece : node.at("single").items()) {
    piece.require_keys({"SpecialToken", "Sequence"});
    for (const char* kind : {"SpecialToken", "Sequence"}) {
      if (piece.has(kind)) piece.at(kind).require_keys({"id", "type_id"});
    }
    if (piece.has("SpecialToken")) {
      append_special(piece.at("SpecialToken").at("id"), node.at("special_tokens"),
                     seen_text ? frame.behind : frame.before);
    } else {
      const JsonNode id = piece.at("Sequence").at("id");
      if (id.text() != "A" || seen_text) id.fail("expected the text (A) exactly once");
      seen_text = true;
    }
  }
  if (!seen_text) node.at("single").fail("has no place for the text (Sequence A)");
  return frame;
}

/// Reads ["<s>", 0].
TokenId parse_named_id(const JsonNode& node) {
  const std::vector<JsonNode> parts = node.items();
  if (parts.size() != 2) node.fail("expected a token and its id");
  (void)parts[0].text();
  return parts[1].integer();
}

/// Reads RobertaProcessing and BertProcessing, which differ only in offsets and pairs.
SpecialFrame parse_cls_and_sep(const JsonNode& node) {
  node.require_keys({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
  return {{parse_named_id(node.at("cls"))}, {parse_named_id(node.at("sep"))}};
}

}  // namespace

void parse_post_processor(const JsonNode& root, TokenizerJson& out) {
  bool seen = false;
  for (const JsonNode& node : components(root, "post_processor", "processors")) {
    const std::string& type = node.at("type").text();
    if (type == "ByteLevel") {
      require_byte_level_keys(node);  // it only trims offsets
      continue;
    }
    const bool has_cls = type == "RobertaProcessing" || type == "BertProcessing";
    if (!has_cls && type != "TemplateProcessing")
      fail_type(node, "Sequence, TemplateProcessing, RobertaProcessing, BertProcessing, ByteLevel");
    // then the tokenizers library treats the first one's output as two texts, and puts tokens between them
    if (seen) node.fail("a second one that puts tokens around the text is not supported");
    SpecialFrame frame = has_cls ? parse_cls_and_sep(node) : parse_template(node);
    out.prefix = std::move(frame.before);
    out.suffix = std::move(frame.behind);
    seen = true;
  }
}

}  // namespace lancet
