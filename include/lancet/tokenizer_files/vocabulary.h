// Pieces and their ids, and the merges between them, as a tokenizer.json and a vocab.json spell them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lancet/core/token_id.h"
#include "lancet/tokenizer_files/json_node.h"

namespace lancet {

/// Lets a map of strings be searched with a string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};
using Vocabulary = std::unordered_map<std::string, TokenId, StringHash, std::equal_to<>>;

/// Parses {"piece": id, ...}. Fails for an id that is not in 0 to 2^31 - 1 or that two pieces have.
Vocabulary parse_vocabulary(const JsonNode& node);

/// Parses "left right"; nothing when these are not two pieces with one space between them.
std::optional<std::pair<std::string, std::string>> parse_merge_line(std::string_view line);

/// The first line of a merges.txt, which some wrote into a tokenizer.json too.
bool is_merges_version(std::string_view line);

}  // namespace lancet
