#include "lancet/tokenizer_files/tokenizer_json.h"

#include <limits>
#include <span>
#include <unordered_set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/known_patterns.h"

namespace lancet {
namespace {

[[noreturn]] void fail_type(const JsonNode& component, std::string_view supported) {
  component.at("type").fail(cat("\"", component.at("type").text(), "\" is not supported (supported: ", supported,
                                "); where the folder has a tokenizer.model, remove tokenizer.json to use that"));
}

/// The components of a node: none for null, its members for a Sequence (whose list is under `members`), else the node
/// itself.
void flatten(const JsonNode& node, std::string_view members, std::vector<JsonNode>& out) {
  if (node.is_null()) return;
  if (node.at("type").text() != "Sequence") {
    out.push_back(node);
    return;
  }
  node.require_keys({"type", members});
  for (const JsonNode& member : node.at(members).items()) flatten(member, members, out);
}

std::vector<JsonNode> components(const JsonNode& root, std::string_view key, std::string_view members) {
  std::vector<JsonNode> out;
  if (root.has(key)) flatten(root.at(key), members, out);
  return out;
}

std::string one_character(const JsonNode& node) {
  const std::string& text = node.text();
  if (text.empty() || utf8_bytes(text[0]) != text.size()) node.fail("expected one character");
  return text;
}

ReplaceStep parse_replace(const JsonNode& node) {
  node.require_keys({"type", "pattern", "content"});
  const JsonNode pattern = node.at("pattern");
  if (!pattern.has("String")) pattern.fail("only {\"String\": ...} is supported, a regular expression is not");
  pattern.require_keys({"String"});
  if (pattern.at("String").text().empty()) pattern.fail("an empty pattern");
  return {pattern.at("String").text(), node.at("content").text()};
}

PrependScheme parse_scheme(const JsonNode& node) {
  if (node.text() == "always") return PrependScheme::kAlways;
  if (node.text() == "first") return PrependScheme::kFirst;
  if (node.text() == "never") return PrependScheme::kNever;
  node.fail("expected always, first or never");
}

Metaspace parse_metaspace(const JsonNode& node) {
  node.require_keys({"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
  Metaspace metaspace;
  metaspace.replacement = one_character(node.at("replacement"));
  if (node.has("prepend_scheme")) metaspace.prepend = parse_scheme(node.at("prepend_scheme"));
  // The older spelling; Hugging Face ignores true, and refuses false beside another scheme than never.
  if (!node.find_boolean("add_prefix_space").value_or(true)) {
    if (node.has("prepend_scheme") && metaspace.prepend != PrependScheme::kNever) {
      node.at("add_prefix_space").fail("false contradicts prepend_scheme");
    }
    metaspace.prepend = PrependScheme::kNever;
  }
  metaspace.split = node.find_boolean("split").value_or(true);
  return metaspace;
}

std::vector<NormalizerStep> parse_normalizer(const JsonNode& root) {
  std::vector<NormalizerStep> steps;
  for (const JsonNode& node : components(root, "normalizer", "normalizers")) {
    const std::string& type = node.at("type").text();
    if (type == "Prepend") {
      node.require_keys({"type", "prepend"});
      steps.emplace_back(PrependStep{node.at("prepend").text()});
    } else if (type == "Replace") {
      steps.emplace_back(parse_replace(node));
    } else if (type == "NFC") {
      node.require_keys({"type"});
      steps.emplace_back(NfcStep{});
    } else {
      fail_type(node, "Sequence, Prepend, Replace, NFC");
    }
  }
  return steps;
}

/// trim_offsets is about the offsets that Hugging Face tells; lancet's spans keep the white space of a token.
void require_byte_level_keys(const JsonNode& node) {
  node.require_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
}

SplitBehavior parse_behavior(const JsonNode& node) {
  const std::string& behavior = node.at("behavior").text();
  const bool inverted = node.find_boolean("invert").value_or(false);
  if (behavior == "Isolated") return SplitBehavior::kIsolated;  // inverted too: the pieces are the same
  if (behavior == "Removed") return inverted ? SplitBehavior::kRemovedGaps : SplitBehavior::kRemovedMatches;
  if (behavior != "MergedWithPrevious")
    node.at("behavior").fail(cat("\"", behavior, "\" is not supported (Isolated, Removed, MergedWithPrevious)"));
  if (inverted) node.at("invert").fail("true with MergedWithPrevious is not supported");
  return SplitBehavior::kMergedWithPrevious;
}

SplitPattern parse_split(const JsonNode& node) {
  node.require_keys({"type", "pattern", "behavior", "invert"});
  const SplitBehavior behavior = parse_behavior(node);
  const JsonNode pattern = node.at("pattern");
  pattern.require_keys({"Regex", "String"});
  if (pattern.has("Regex"))
    return SplitPattern::regex(pattern.at("Regex").text(), behavior, pattern.at("Regex").where());
  const JsonNode text = pattern.at("String");
  if (text.text().empty()) text.fail("an empty pattern");
  return SplitPattern::literal(text.text(), behavior, text.where());
}

Splits parse_splits(std::span<const JsonNode> nodes, std::string_view supported) {
  Splits splits;
  for (const JsonNode& node : nodes) {
    if (node.at("type").text() != "Split") fail_type(node, supported);
    splits.patterns.push_back(parse_split(node));
  }
  return splits;
}

/// Any number of Split, then ByteLevel.
ByteLevel parse_byte_level(std::span<const JsonNode> nodes) {
  ByteLevel out;
  out.splits = parse_splits(nodes.first(nodes.size() - 1), "Split before ByteLevel, which is the last");
  const JsonNode& last = nodes.back();
  require_byte_level_keys(last);
  out.add_prefix_space = last.find_boolean("add_prefix_space").value_or(true);  // Hugging Face's defaults
  if (out.add_prefix_space && nodes.size() > 1)
    last.fail("add_prefix_space: true after Split puts a space before every word, which is not supported");
  if (last.find_boolean("use_regex").value_or(true))
    out.splits.patterns.push_back(SplitPattern::regex(kGpt2Pattern, SplitBehavior::kIsolated, last.where()));
  return out;
}

void parse_pre_tokenizer(const JsonNode& root, TokenizerJson& out) {
  const std::vector<JsonNode> nodes = components(root, "pre_tokenizer", "pretokenizers");
  if (nodes.empty()) return;
  const std::string& type = nodes.back().at("type").text();
  constexpr std::string_view kSupported = "Metaspace, Split, ByteLevel after any number of Split";
  if (type == "ByteLevel") {
    out.pre_tokenizer = parse_byte_level(nodes);
    return;
  }
  if (type == "Split") {
    out.pre_tokenizer = parse_splits(nodes, kSupported);
    return;
  }
  for (const JsonNode& node : nodes) {
    if (node.at("type").text() != "Metaspace") fail_type(node, kSupported);
  }
  if (nodes.size() > 1) nodes[1].fail("a second Metaspace is not supported");
  out.pre_tokenizer = parse_metaspace(nodes[0]);
}

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
      steps.emplace_back(parse_metaspace(node));
    } else if (type == "ByteLevel") {
      require_byte_level_keys(node);
      steps.emplace_back(ByteLevelStep{});
    } else {
      fail_type(node, "Sequence, Replace, ByteFallback, Fuse, Strip, Metaspace, ByteLevel");
    }
  }
  return steps;
}

void append_special(const JsonNode& name, const JsonNode& special_tokens, std::vector<TokenId>& out) {
  for (const JsonNode& id : special_tokens.at(name.text()).at("ids").items()) out.push_back(id.integer());
}

/// Fills `prefix` and `suffix` from the template for a single text. The one for pairs is never used.
void parse_template(const JsonNode& node, TokenizerJson& out) {
  node.require_keys({"type", "single", "pair", "special_tokens"});
  bool seen_text = false;
  for (const JsonNode& piece : node.at("single").items()) {
    piece.require_keys({"SpecialToken", "Sequence"});
    for (const char* kind : {"SpecialToken", "Sequence"}) {
      if (piece.has(kind)) piece.at(kind).require_keys({"id", "type_id"});
    }
    if (piece.has("SpecialToken")) {
      append_special(piece.at("SpecialToken").at("id"), node.at("special_tokens"), seen_text ? out.suffix : out.prefix);
    } else {
      const JsonNode id = piece.at("Sequence").at("id");
      if (id.text() != "A" || seen_text) id.fail("expected the text (A) exactly once");
      seen_text = true;
    }
  }
  if (!seen_text) node.at("single").fail("has no place for the text (Sequence A)");
}

void parse_post_processor(const JsonNode& root, TokenizerJson& out) {
  bool seen = false;
  for (const JsonNode& node : components(root, "post_processor", "processors")) {
    if (node.at("type").text() == "ByteLevel") {
      require_byte_level_keys(node);  // all it does is to trim offsets
      continue;
    }
    if (node.at("type").text() != "TemplateProcessing") fail_type(node, "TemplateProcessing, ByteLevel");
    if (seen) node.fail("a second TemplateProcessing is not supported");
    parse_template(node, out);
    seen = true;
  }
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
  const bool neutral =
      node.is_text() ? node.text().empty() : node.value().is_number() && node.value().get<double>() == 0;
  if (!neutral) node.fail("is not supported; only null is");
}

BpeSpec parse_model(const JsonNode& model) {
  // Files older than the "type" key name no type; those with merges are BPE.
  if (model.has("type") && model.at("type").text() != "BPE") fail_type(model, "BPE");
  model.require_keys({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                      "byte_fallback", "ignore_merges", "vocab", "merges"});
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) require_absent(model, key);
  BpeSpec spec;
  if (model.has("unk_token")) spec.unk_token = model.at("unk_token").text();
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

}  // namespace

TokenizerJson load_tokenizer_json(const std::filesystem::path& file) {
  const nlohmann::json document = load_json(file);
  const JsonNode root(document, file);
  root.require_keys({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"});
  if (root.has("version") && root.at("version").text() != "1.0") root.at("version").fail("expected 1.0");
  TokenizerJson out;
  // The model first: "Unigram is not supported" says more than what its normalizer lacks.
  if (root.at("model").has("type") && root.at("model").at("type").text() != "BPE") fail_type(root.at("model"), "BPE");
  parse_pre_tokenizer(root, out);
  out.normalizer = parse_normalizer(root);
  out.model = parse_model(root.at("model"));
  out.added_tokens = parse_added_tokens(root);
  parse_post_processor(root, out);
  if (root.has("decoder")) out.decoder = parse_decoder(root);
  // truncation and padding are what a caller last asked for, not the tokenizer's own: transformers resets both unless a
  // call asks for them, and lancet never asks. So they are not read.
  return out;
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
