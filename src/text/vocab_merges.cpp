#include "vocab_merges.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/known_patterns.h"
#include "lancet/tokenizer_files/tokenizer_config.h"

namespace lancet {
namespace {

/// What a tokenizer's class means in transformers.
struct TokenizerClass {
  std::string_view name;
  std::array<std::string_view, 4> model_types;  ///< values of model_type in config.json; empty: unused
  std::string_view pattern;
  bool normalizes = false;  ///< NFC
  bool has_bos = false;     ///< it is kEndOfText unless another is named
};

/// UNK and EOS of both classes, unless others are named.
constexpr std::string_view kEndOfText = "<|endoftext|>";

constexpr std::array<TokenizerClass, 2> kClasses{{{.name = "GPT2Tokenizer",
                                                   .model_types = {"gpt2", "gptj", "", ""},
                                                   .pattern = kGpt2Pattern,
                                                   .normalizes = false,
                                                   .has_bos = true},
                                                  {.name = "Qwen2Tokenizer",
                                                   .model_types = {"qwen2", "qwen3", "qwen2_moe", "qwen3_moe"},
                                                   .pattern = kQwen2Pattern,
                                                   .normalizes = true,
                                                   .has_bos = false}}};

std::optional<std::string> model_type_of(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  if (!has_model_file(file)) return std::nullopt;
  const nlohmann::json document = parse_json(bare_floats_as_objects(read_model_file(file, "tokenizer")), file);
  const JsonNode root(document, file);
  if (!root.has("model_type")) return std::nullopt;
  return root.at("model_type").text();
}

const TokenizerClass& class_of(const TokenizerConfig& config, const std::filesystem::path& folder) {
  constexpr std::string_view kRemedy =
      "; save the tokenizer as tokenizer.json (AutoTokenizer.from_pretrained(folder).save_pretrained(folder) in "
      "transformers)";
  if (config.tokenizer_class) {
    std::string_view name = *config.tokenizer_class;
    if (name.ends_with("Fast")) name.remove_suffix(4);
    for (const TokenizerClass& known : kClasses)
      if (known.name == name) return known;
    throw TokenizerError(cat(
        "tokenizer: ", (folder / "tokenizer_config.json").string(), ": tokenizer_class: \"", *config.tokenizer_class,
        "\": with vocab.json and merges.txt only GPT2Tokenizer and Qwen2Tokenizer are supported", kRemedy));
  }
  const std::optional<std::string> type = model_type_of(folder);
  for (const TokenizerClass& known : kClasses)
    if (type && std::find(known.model_types.begin(), known.model_types.end(), *type) != known.model_types.end())
      return known;
  throw TokenizerError(cat("tokenizer: ", folder.string(),
                           ": vocab.json and merges.txt do not say how text is cut into words: expected "
                           "tokenizer_config.json with tokenizer_class GPT2Tokenizer or Qwen2Tokenizer beside them",
                           type ? cat(" (config.json's model_type ", *type, " stands for neither)") : "", kRemedy));
}

Vocabulary load_vocabulary(const std::filesystem::path& file) {
  const nlohmann::json document = load_json(file);
  return parse_vocabulary(JsonNode(document, file));
}

/// Each line has one merge, and the number of the line is its rank.
std::vector<std::pair<std::string, std::string>> load_merges(const std::filesystem::path& file,
                                                             const Vocabulary& vocabulary) {
  const std::string text = read_model_file(file, "tokenizer");
  std::vector<std::pair<std::string, std::string>> merges;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (is_merges_version(line)) continue;
    const auto fail = [&](std::string_view what) {
      throw TokenizerError(cat("tokenizer: ", file.string(), ": line ", number, ": \"", line.substr(0, 80),
                               "\": ", what, "; download the file again"));
    };
    auto merge = parse_merge_line(line);
    if (!merge) fail("expected two pieces with one space between them");
    for (const std::string& piece : {merge->first, merge->second, merge->first + merge->second})
      if (!vocabulary.contains(piece)) fail(cat("the piece \"", piece, "\" is not in vocab.json"));
    merges.push_back(*std::move(merge));
  }
  return merges;
}

/// Returns the tokens that are split out of the text: those that are listed with their ids, and those with a role that
/// are pieces. A token with a role but without an id is an error, because its id would have to be guessed.
std::vector<AddedToken> collect_added_tokens(const TokenizerConfig& config, const Vocabulary& vocabulary,
                                             const std::filesystem::path& folder) {
  std::vector<AddedToken> tokens = config.added_tokens;
  std::unordered_map<std::string, size_t> listed;  // index of the first one, by content
  for (size_t i = 0; i < tokens.size(); ++i) listed.emplace(tokens[i].content, i);
  for (AddedToken named : config.named_tokens) {
    if (const auto found = listed.find(named.content); found != listed.end()) {
      tokens[found->second].special = true;
      continue;
    }
    const auto piece = vocabulary.find(named.content);
    if (piece == vocabulary.end())
      throw TokenizerError(cat("tokenizer: ", folder.string(), ": the special token \"", named.content,
                               "\" has no id: expected it in vocab.json, in added_tokens_decoder of "
                               "tokenizer_config.json or in added_tokens.json"));
    named.id = piece->second;
    listed.emplace(named.content, tokens.size());
    tokens.push_back(std::move(named));
  }
  if (const auto piece = vocabulary.find(kEndOfText);
      piece != vocabulary.end() && !listed.contains(std::string(kEndOfText))) {
    AddedToken end_of_text;
    end_of_text.id = piece->second;
    end_of_text.content = kEndOfText;
    end_of_text.special = true;
    tokens.push_back(std::move(end_of_text));
  }
  return tokens;
}

/// Returns the id of the BOS or EOS that the configuration asks to add, as a list of one.
std::vector<TokenId> asked_for(const std::optional<bool>& is_added, const std::optional<std::string>& name,
                               const TokenizerJson& tokenizer, const std::filesystem::path& folder) {
  if (!is_added.value_or(false)) return {};
  const std::string_view content = name ? std::string_view(*name) : kEndOfText;
  for (const AddedToken& token : tokenizer.added_tokens)
    if (token.content == content) return {token.id};
  throw TokenizerError(cat("tokenizer: ", (folder / "tokenizer_config.json").string(), ": \"", content,
                           "\" is to be added to every text, but is not in vocab.json"));
}

}  // namespace

TokenizerJson load_vocab_and_merges(const std::filesystem::path& folder) {
  const TokenizerConfig config = load_tokenizer_config(folder);
  const TokenizerClass& kind = class_of(config, folder);
  if (!has_model_file(folder / "merges.txt"))
    throw TokenizerError(cat("tokenizer: ", folder.string(), ": vocab.json without merges.txt: copy it there too"));
  TokenizerJson out;
  BpeSpec model;
  model.vocabulary = load_vocabulary(folder / "vocab.json");
  model.merges = load_merges(folder / "merges.txt", model.vocabulary);
  out.added_tokens = collect_added_tokens(config, model.vocabulary, folder);
  if (kind.normalizes) out.normalizer.emplace_back(NormalForm::kNfc);
  if (config.add_prefix_space.value_or(false)) out.pre_tokenizer.emplace_back(PrefixSpaceStep{});
  out.pre_tokenizer.emplace_back(
      SplitPattern(TextPattern::regex(kind.pattern, cat("tokenizer: ", kind.name)), SplitBehavior::kIsolated));
  out.pre_tokenizer.emplace_back(SpellBytesStep{});
  out.prefix = asked_for(config.add_bos_token, config.bos_token, out, folder);
  out.suffix = asked_for(config.add_eos_token, config.eos_token, out, folder);
  out.decoder = std::vector<DecoderStep>{ReadBytesStep{}};
  if (model.vocabulary.contains(kEndOfText)) {
    out.eos_token = kEndOfText;
    if (kind.has_bos) out.bos_token = kEndOfText;
  }
  out.model = std::move(model);
  return out;
}

}  // namespace lancet
