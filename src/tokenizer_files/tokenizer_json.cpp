#include "lancet/tokenizer_files/tokenizer_json.h"

#include <algorithm>

#include "json_components.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Collects the components of a node: none for null, the members of a Sequence (whose list is under `members`), else
/// the node itself.
void flatten(const JsonNode& node, std::string_view members, std::vector<JsonNode>& out) {
  if (node.is_null()) return;
  if (node.at("type").text() != "Sequence") {
    out.push_back(node);
    return;
  }
  node.require_keys({"type", members});
  for (const JsonNode& member : node.at(members).items()) flatten(member, members, out);
}

PrependScheme parse_scheme(const JsonNode& node) {
  if (node.text() == "always") return PrependScheme::kAlways;
  if (node.text() == "first") return PrependScheme::kFirst;
  if (node.text() == "never") return PrependScheme::kNever;
  node.fail("expected always, first or never");
}

std::vector<AddedToken> parse_added_tokens(const JsonNode& root) {
  std::vector<AddedToken> tokens;
  if (!root.has("added_tokens")) return tokens;
  for (const JsonNode& node : root.at("added_tokens").items()) {
    node.require_keys({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    tokens.push_back(parse_added_token(node, node.at("id").integer()));
  }
  return tokens;
}

/// Returns the ids of pieces, for any kind of model. Built once for all added tokens.
Vocabulary pieces_of(const std::variant<BpeSpec, UnigramSpec>& model) {
  if (const auto* bpe = std::get_if<BpeSpec>(&model)) return bpe->vocabulary;
  const auto& pieces = std::get<UnigramSpec>(model).pieces;
  Vocabulary ids;
  for (size_t id = 0; id < pieces.size(); ++id) ids.insert_or_assign(pieces[id].first, static_cast<TokenId>(id));
  return ids;
}

size_t count_pieces(const std::variant<BpeSpec, UnigramSpec>& model) {
  if (const auto* bpe = std::get_if<BpeSpec>(&model)) return bpe->vocabulary.size();
  return std::get<UnigramSpec>(model).pieces.size();
}

/// The tokenizers library ignores the ids that the file gives to added tokens: a token that is a piece has the piece's
/// id, and the others are numbered in the file's order, after the last piece. transformers' ids are these.
void number_added_tokens(const std::filesystem::path& file, TokenizerJson& tokenizer) {
  const Vocabulary pieces = pieces_of(tokenizer.model);
  auto next = static_cast<TokenId>(count_pieces(tokenizer.model));
  std::vector<AddedToken> numbered;
  std::unordered_map<std::string, size_t> places;  // index in `numbered`, by content
  std::vector<std::string> moved;
  for (AddedToken token : tokenizer.added_tokens) {
    if (const auto again = places.find(token.content); again != places.end()) {
      AddedToken& first = numbered[again->second];  // if a token occurs twice, its last entry counts
      token.special = token.special || first.special;
      token.id = first.id;
      first = std::move(token);
      continue;
    }
    const auto piece = pieces.find(token.content);
    const TokenId id = piece != pieces.end() ? piece->second : next++;
    if (id != token.id) moved.push_back(cat("\"", token.content, "\" (", token.id, " there, ", id, " here)"));
    token.id = id;
    places.emplace(token.content, numbered.size());
    numbered.push_back(std::move(token));
  }
  tokenizer.added_tokens = std::move(numbered);
  if (moved.empty()) return;
  constexpr size_t kShown = 3;
  const size_t more = moved.size() - std::min(moved.size(), kShown);
  moved.resize(moved.size() - more);
  log_warning(cat("tokenizer: ", file.string(),
                  ": added_tokens: ids as transformers gives them, which are not the file's: ", join(moved),
                  more > 0 ? cat(" and ", more, " more") : "",
                  "; tokens that are no pieces are numbered in the file's order, from the number of pieces on"));
}

}  // namespace

std::vector<JsonNode> components(const JsonNode& root, std::string_view key, std::string_view members) {
  std::vector<JsonNode> out;
  if (root.has(key)) flatten(root.at(key), members, out);
  return out;
}

void fail_type(const JsonNode& component, std::string_view supported) {
  component.at("type").fail(cat("\"", component.at("type").text(), "\" is not supported (supported: ", supported,
                                "); where the folder has a tokenizer.model, remove tokenizer.json to use that"));
}

std::string one_character(const JsonNode& node) {
  const std::string& text = node.text();
  if (text.empty() || utf8_bytes(text[0]) != text.size()) node.fail("expected one character");
  return text;
}

TextPattern parse_pattern(const JsonNode& node) {
  node.require_keys({"Regex", "String"});
  if (node.has("Regex")) return TextPattern::regex(node.at("Regex").text(), node.at("Regex").where());
  const JsonNode text = node.at("String");
  if (text.text().empty()) text.fail("an empty pattern");
  return TextPattern::literal(text.text());
}

ReplaceStep parse_replace(const JsonNode& node) {
  node.require_keys({"type", "pattern", "content"});
  return {parse_pattern(node.at("pattern")), node.at("content").text()};
}

MetaspaceComponent parse_metaspace(const JsonNode& node) {
  node.require_keys({"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
  MetaspaceComponent metaspace;
  metaspace.step.replacement = one_character(node.at("replacement"));
  PrependScheme& prepend = metaspace.step.prepend;
  if (node.has("prepend_scheme")) prepend = parse_scheme(node.at("prepend_scheme"));
  // The older key. Hugging Face ignores true, and refuses false together with another scheme than never.
  if (!node.find_boolean("add_prefix_space").value_or(true)) {
    if (node.has("prepend_scheme") && prepend != PrependScheme::kNever) {
      node.at("add_prefix_space").fail("false contradicts prepend_scheme");
    }
    prepend = PrependScheme::kNever;
  }
  metaspace.split = node.find_boolean("split").value_or(true);
  return metaspace;
}

void require_byte_level_keys(const JsonNode& node) {
  node.require_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
}

TokenizerJson load_tokenizer_json(const std::filesystem::path& file) {
  const nlohmann::json document = load_json(file);
  const JsonNode root(document, file);
  root.require_keys({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"});
  if (root.has("version") && root.at("version").text() != "1.0") root.at("version").fail("expected 1.0");
  TokenizerJson out;
  // The model is first, because "WordPiece is not supported" says more than a problem of its normalizer.
  out.model = parse_model(root.at("model"));
  out.pre_tokenizer = parse_pre_tokenizer(root);
  out.normalizer = parse_normalizer(root);
  out.added_tokens = parse_added_tokens(root);
  number_added_tokens(file, out);
  parse_post_processor(root, out);
  if (root.has("decoder")) out.decoder = parse_decoder(root);
  // truncation and padding are not read: they are what a caller last asked for, and transformers resets both unless a
  // call asks for them, which lancet never does
  return out;
}

}  // namespace lancet
