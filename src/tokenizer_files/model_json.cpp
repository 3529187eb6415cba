#include <cmath>
#include <limits>
#include <unordered_set>

#include "json_components.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

std::pair<std::string, std::string> parse_merge(const JsonNode& node) {
  if (node.is_list()) {
    const std::vector<JsonNode> parts = node.items();
    if (parts.size() != 2) node.fail("expected two pieces");
    return {parts[0].text(), parts[1].text()};
  }
  if (auto merge = parse_merge_line(node.text())) return *std::move(merge);
  node.fail(cat("\"", node.text(), "\": expected two pieces with one space between them"));
}

void require_absent(const JsonNode& model, std::string_view key) {
  if (!model.has(key)) return;
  const JsonNode node = model.at(key);
  if (!node.value().is_number() || node.value().get<double>() != 0)
    node.fail("is not supported: with it a text has other ids each time; only null is");
}

std::string text_or_empty(const JsonNode& model, std::string_view key) {
  return model.has(key) ? model.at(key).text() : std::string();
}

BpeSpec parse_bpe(const JsonNode& model) {
  model.require_keys({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                      "byte_fallback", "ignore_merges", "vocab", "merges"});
  require_absent(model, "dropout");
  BpeSpec spec;
  if (model.has("unk_token")) spec.unk_token = model.at("unk_token").text();
  spec.continuing_subword_prefix = text_or_empty(model, "continuing_subword_prefix");
  spec.end_of_word_suffix = text_or_empty(model, "end_of_word_suffix");
  spec.byte_fallback = model.find_boolean("byte_fallback").value_or(false);
  spec.fuse_unk = model.find_boolean("fuse_unk").value_or(false);
  spec.ignore_merges = model.find_boolean("ignore_merges").value_or(false);

  spec.vocabulary = parse_vocabulary(model.at("vocab"));
  for (const JsonNode& merge : model.at("merges").items()) {
    if (merge.is_text() && is_merges_version(merge.text())) continue;
    spec.merges.push_back(parse_merge(merge));
  }
  return spec;
}

std::pair<std::string, double> parse_scored_piece(const JsonNode& node) {
  const std::vector<JsonNode> parts = node.items();
  if (parts.size() != 2 || !parts[1].value().is_number() || !std::isfinite(parts[1].value().get<double>()))
    node.fail("expected a piece and its score");
  return {parts[0].text(), parts[1].value().get<double>()};
}

UnigramSpec parse_unigram(const JsonNode& model) {
  model.require_keys({"type", "unk_id", "vocab", "byte_fallback", "alpha", "nbest_size"});
  for (const char* key : {"alpha", "nbest_size"}) require_absent(model, key);
  UnigramSpec spec;
  spec.byte_fallback = model.find_boolean("byte_fallback").value_or(false);
  for (const JsonNode& piece : model.at("vocab").items()) spec.pieces.push_back(parse_scored_piece(piece));
  if (model.has("unk_id")) {
    spec.unk = model.at("unk_id").integer();
    if (*spec.unk >= static_cast<TokenId>(spec.pieces.size()))
      model.at("unk_id").fail(cat("no piece has the id ", *spec.unk, " (", spec.pieces.size(), " pieces)"));
  }
  return spec;
}

}  // namespace

std::variant<BpeSpec, UnigramSpec> parse_model(const JsonNode& model) {
  // Files older than the key "type" have no type. Those with merges are BPE.
  const std::string type = model.has("type") ? model.at("type").text() : "BPE";
  if (type == "Unigram") return parse_unigram(model);
  if (type != "BPE") fail_type(model, "BPE, Unigram");
  return parse_bpe(model);
}

Vocabulary parse_vocabulary(const JsonNode& node) {
  if (!node.is_object()) node.fail("expected an object");
  Vocabulary vocabulary;
  std::unordered_set<TokenId> ids(node.value().size());
  vocabulary.reserve(node.value().size());
  for (const auto& [piece, value] : node.value().items()) {
    const JsonNode id = node.at(piece);
    if (id.integer() > std::numeric_limits<int32_t>::max()) id.fail("an id above 2^31");
    if (!ids.insert(id.integer()).second) id.fail(cat("the id ", id.integer(), " has two pieces"));
    vocabulary.emplace(piece, id.integer());
  }
  return vocabulary;
}

std::optional<std::pair<std::string, std::string>> parse_merge_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return std::pair(std::string(line.substr(0, space)), std::string(line.substr(space + 1)));
}

bool is_merges_version(std::string_view line) { return line.starts_with("#version"); }

}  // namespace lancet
