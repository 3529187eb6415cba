#include <array>

#include "json_components.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/known_patterns.h"

namespace lancet {
namespace {

using PreTokenizerSteps = std::vector<PreTokenizerStep>;

SplitBehavior parse_behavior(const JsonNode& node) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors{
      {{"Removed", SplitBehavior::kRemoved},
       {"Isolated", SplitBehavior::kIsolated},
       {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
       {"MergedWithNext", SplitBehavior::kMergedWithNext},
       {"Contiguous", SplitBehavior::kContiguous}}};
  for (const auto& [name, behavior] : kBehaviors)
    if (node.text() == name) return behavior;
  node.fail(cat("\"", node.text(), "\": expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous"));
}

SplitPattern own_split(const JsonNode& node, std::string_view pattern, SplitBehavior behavior,
                       SplitDelimiter delimiter = SplitDelimiter::kMatches) {
  return {TextPattern::regex(pattern, node.where()), behavior, delimiter};
}

PreTokenizerStep parse_split(const JsonNode& node) {
  node.require_keys({"type", "pattern", "behavior", "invert"});
  const bool inverted = node.find_boolean("invert").value_or(false);
  return SplitPattern(parse_pattern(node.at("pattern")), parse_behavior(node.at("behavior")),
                      inverted ? SplitDelimiter::kGaps : SplitDelimiter::kMatches);
}

PreTokenizerStep parse_digits(const JsonNode& node) {
  node.require_keys({"type", "individual_digits"});
  const bool single = node.at("individual_digits").boolean();
  return own_split(node, kDigitPattern, single ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

PreTokenizerStep parse_punctuation(const JsonNode& node) {
  node.require_keys({"type", "behavior"});
  return own_split(node, kPunctuationPattern,
                   node.has("behavior") ? parse_behavior(node.at("behavior")) : SplitBehavior::kIsolated);
}

PreTokenizerStep parse_delimiter(const JsonNode& node) {
  node.require_keys({"type", "delimiter"});
  return SplitPattern(TextPattern::literal(one_character(node.at("delimiter"))), SplitBehavior::kRemoved);
}

PreTokenizerStep parse_fixed_length(const JsonNode& node) {
  constexpr int64_t kDefault = 5;
  constexpr int64_t kLongest = 65535;  // largest repeat in an expression
  node.require_keys({"type", "length"});
  const int64_t length = node.has("length") ? node.at("length").integer() : kDefault;
  if (length < 1 || length > kLongest) node.at("length").fail(cat("expected 1 to ", kLongest));
  return own_split(node, cat(R"([\s\S]{1,)", length, "}"), SplitBehavior::kIsolated);
}

void append_metaspace(const JsonNode& node, PreTokenizerSteps& steps) {
  const MetaspaceComponent metaspace = parse_metaspace(node);
  steps.emplace_back(metaspace.step);
  if (metaspace.split)
    steps.emplace_back(SplitPattern(TextPattern::literal(metaspace.step.replacement), SplitBehavior::kMergedWithNext));
}

void append_byte_level(const JsonNode& node, PreTokenizerSteps& steps) {
  require_byte_level_keys(node);
  if (node.find_boolean("add_prefix_space").value_or(true)) steps.emplace_back(PrefixSpaceStep{});
  if (node.find_boolean("use_regex").value_or(true))
    steps.emplace_back(own_split(node, kGpt2Pattern, SplitBehavior::kIsolated));
  steps.emplace_back(SpellBytesStep{});
}

void append_bert_words(const JsonNode& node, PreTokenizerSteps& steps) {
  node.require_keys({"type"});
  steps.emplace_back(own_split(node, kWhiteSpacePattern, SplitBehavior::kRemoved));
  steps.emplace_back(own_split(node, kPunctuationPattern, SplitBehavior::kIsolated));
}

void append_component(const JsonNode& node, PreTokenizerSteps& steps) {
  const std::string& type = node.at("type").text();
  if (type == "ByteLevel") {
    append_byte_level(node, steps);
  } else if (type == "Metaspace") {
    append_metaspace(node, steps);
  } else if (type == "Split") {
    steps.push_back(parse_split(node));
  } else if (type == "Digits") {
    steps.push_back(parse_digits(node));
  } else if (type == "Punctuation") {
    steps.push_back(parse_punctuation(node));
  } else if (type == "Whitespace") {
    node.require_keys({"type"});
    steps.emplace_back(own_split(node, kWordPattern, SplitBehavior::kRemoved, SplitDelimiter::kGaps));
  } else if (type == "WhitespaceSplit") {
    node.require_keys({"type"});
    steps.emplace_back(own_split(node, kWhiteSpacePattern, SplitBehavior::kRemoved));
  } else if (type == "BertPreTokenizer") {
    append_bert_words(node, steps);
  } else if (type == "CharDelimiterSplit") {
    steps.push_back(parse_delimiter(node));
  } else if (type == "FixedLength") {
    steps.push_back(parse_fixed_length(node));
  } else {
    fail_type(node,
              "Sequence, ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, "
              "BertPreTokenizer, CharDelimiterSplit, FixedLength");
  }
}

}  // namespace

std::vector<PreTokenizerStep> parse_pre_tokenizer(const JsonNode& root) {
  PreTokenizerSteps steps;
  for (const JsonNode& node : components(root, "pre_tokenizer", "pretokenizers")) append_component(node, steps);
  return steps;
}

}  // namespace lancet
