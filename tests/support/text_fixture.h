// A tokenizer.json small enough to know by heart, for the tests of text.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/text/tokenizer.h"
#include "temp_dir.h"

namespace lancet::testing {

/// Pieces: <unk> <s> </s>, the 256 bytes, "▁", the letters of "Paris", and what these merges make of them.
inline nlohmann::json tiny_spec() {
  const std::vector<std::pair<std::string, std::string>> merges = {{"▁", "P"}, {"a", "r"},  {"▁P", "ar"},
                                                                   {"i", "s"}, {"▁", "is"}, {"▁Par", "is"}};
  nlohmann::json vocab;
  const auto add = [&](const std::string& piece) {
    if (!vocab.contains(piece)) vocab[piece] = vocab.size();
  };
  for (const char* piece : {"<unk>", "<s>", "</s>"}) add(piece);
  for (int byte = 0; byte < 256; ++byte) {
    const char* digits = "0123456789ABCDEF";
    add(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">");
  }
  for (const char* piece : {"▁", "P", "a", "r", "i", "s"}) add(piece);
  for (const auto& [left, right] : merges) add(left + right);

  const auto special = [](int id, const char* content) {
    return nlohmann::json{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                          {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  nlohmann::json spec = nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    "pre_tokenizer": null,
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
    "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
      "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false}})");
  spec["added_tokens"] = {special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")};
  spec["model"]["vocab"] = vocab;
  spec["model"]["merges"] = merges;
  return spec;
}

/// Trained on whole texts: a word's "s" takes the space after it, so that "is" ends otherwise where a word follows.
inline nlohmann::json joining_spec() {
  nlohmann::json spec = tiny_spec();
  spec["model"]["vocab"]["s▁"] = spec["model"]["vocab"].size();
  spec["model"]["merges"].insert(spec["model"]["merges"].begin(), nlohmann::json::array({"s", "▁"}));
  return spec;
}

inline void write_file(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

/// The tokenizer of `spec`; its folder is gone afterwards.
inline std::unique_ptr<Tokenizer> open_spec(const nlohmann::json& spec, const std::string& config = {}) {
  const TempDir folder;
  write_file(folder / "tokenizer.json", spec.dump());
  if (!config.empty()) write_file(folder / "tokenizer_config.json", config);
  return open_tokenizer(folder.path());
}

/// "▁Par is": what the ids stand for.
inline std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::vector<std::string> pieces;
  for (const TokenId id : ids) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

/// Returns the pieces of `text` by itself, without special tokens.
inline std::vector<std::string> text_pieces(const Tokenizer& tokenizer, const std::string& text) {
  return pieces_of(tokenizer, tokenizer.ids(text, SpecialTokens::kNone));
}

/// The message of the error of type E that `action` throws, or what else happened.
template <typename E, typename Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

/// All of `parts` stand in `text`.
inline ::testing::AssertionResult contains(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << "\"" << part << "\" is not in: " << text;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace lancet::testing
