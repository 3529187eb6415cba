// The components of a tokenizer.json. Each is read in its own file (*_json.cpp).
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/tokenizer_json.h"

namespace lancet {

std::vector<NormalizerStep> parse_normalizer(const JsonNode& root);
std::vector<PreTokenizerStep> parse_pre_tokenizer(const JsonNode& root);
std::vector<DecoderStep> parse_decoder(const JsonNode& root);
std::variant<BpeSpec, UnigramSpec> parse_model(const JsonNode& model);
/// Fills `prefix` and `suffix`.
void parse_post_processor(const JsonNode& root, TokenizerJson& out);

// Shared by several components.

/// Returns the components under `key`: none for null, the members of a Sequence (whose list is under `members`), else
/// the single one.
std::vector<JsonNode> components(const JsonNode& root, std::string_view key, std::string_view members);

/// Throws: "... is not supported (supported: ...)".
[[noreturn]] void fail_type(const JsonNode& component, std::string_view supported);

std::string one_character(const JsonNode& node);

/// Parses {"String": ...} or {"Regex": ...}.
TextPattern parse_pattern(const JsonNode& node);

ReplaceStep parse_replace(const JsonNode& node);

struct MetaspaceComponent {
  MetaspaceStep step;
  bool split = true;
};
MetaspaceComponent parse_metaspace(const JsonNode& node);

/// Checks the keys of ByteLevel, wherever it occurs. trim_offsets concerns the offsets that Hugging Face returns;
/// lancet's spans include the white space of a token.
void require_byte_level_keys(const JsonNode& node);

}  // namespace lancet
