#include <memory>
#include <stdexcept>

#include "json_components.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

using NormalizerSteps = std::vector<NormalizerStep>;

NormalizerStep precompiled(const JsonNode& node) {
  node.require_keys({"type", "precompiled_charsmap"});
  const JsonNode charsmap = node.at("precompiled_charsmap");
  try {
    return PrecompiledStep{std::make_shared<const PrecompiledMap>(charsmap.text())};
  } catch (const std::invalid_argument& problem) {
    charsmap.fail(cat(problem.what(), "; download the file again"));
  }
}

void append_bert_normalizer(const JsonNode& node, NormalizerSteps& steps) {
  node.require_keys({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  const bool lowercase = node.at("lowercase").boolean();
  if (node.at("clean_text").boolean()) steps.emplace_back(CharacterStep::kCleanText);
  if (node.at("handle_chinese_chars").boolean()) steps.emplace_back(CharacterStep::kSpaceIdeographs);
  if (node.find_boolean("strip_accents").value_or(lowercase)) {
    steps.emplace_back(NormalForm::kNfd);
    steps.emplace_back(CharacterStep::kRemoveNonSpacingMarks);
  }
  if (lowercase) steps.emplace_back(CharacterStep::kLowercase);
}

/// Appends a component without settings. Returns false if it is another component.
bool append_plain(const JsonNode& node, NormalizerSteps& steps) {
  struct Plain {
    std::string_view type;
    NormalizerStep step;
  };
  static const std::vector<Plain> kPlain = {
      {"NFC", NormalForm::kNfc},       {"NFD", NormalForm::kNfd},
      {"NFKC", NormalForm::kNfkc},     {"NFKD", NormalForm::kNfkd},
      {"Nmt", CharacterStep::kNmt},    {"Lowercase", CharacterStep::kLowercase},
      {"ByteLevel", SpellBytesStep{}}, {"StripAccents", CharacterStep::kRemoveMarks},
  };
  for (const Plain& plain : kPlain) {
    if (node.at("type").text() != plain.type) continue;
    node.require_keys({"type"});
    steps.push_back(plain.step);
    return true;
  }
  return false;
}

}  // namespace

std::vector<NormalizerStep> parse_normalizer(const JsonNode& root) {
  NormalizerSteps steps;
  for (const JsonNode& node : components(root, "normalizer", "normalizers")) {
    const std::string& type = node.at("type").text();
    if (append_plain(node, steps)) continue;
    if (type == "Prepend") {
      node.require_keys({"type", "prepend"});
      steps.emplace_back(PrependStep{node.at("prepend").text()});
    } else if (type == "Replace") {
      steps.emplace_back(parse_replace(node));
    } else if (type == "Strip") {
      node.require_keys({"type", "strip_left", "strip_right"});
      steps.emplace_back(TrimStep{node.at("strip_left").boolean(), node.at("strip_right").boolean()});
    } else if (type == "Precompiled") {
      steps.push_back(precompiled(node));
    } else if (type == "BertNormalizer") {
      append_bert_normalizer(node, steps);
    } else {
      fail_type(node,
                "Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Lowercase, Strip, StripAccents, "
                "BertNormalizer, ByteLevel");
    }
  }
  return steps;
}

}  // namespace lancet
