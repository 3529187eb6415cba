// tokenizer.json as the metadata of a GGUF file.
// Sources: llama.cpp, convert_hf_to_gguf.py (which entries a file has, and the fillers of ids without a token).
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_tokenizer.h"
#include "piece_merges.h"
#include "pre_tokenizers.h"

namespace lancet {
namespace {

using Json = nlohmann::json;
using MergePair = std::pair<std::string, std::string>;

[[noreturn]] void refuse_part(const FolderTokenizer& from, std::string_view place, std::string_view expected,
                              std::string_view got) {
  throw CheckpointError(cat(from.where, ": ", place, ": expected ", expected, ", got ", printable(std::string(got)),
                            ": a GGUF file cannot say it"));
}

Json parsed(const FolderTokenizer& from) {
  try {
    return parse_strict_json(from.json);
  } catch (const JsonProblem& problem) {
    throw CheckpointError(cat(from.where, ": ", problem.what(), "; download the file again"));
  }
}

/// Returns the value of a key; null where there is none.
const Json& under(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : kNull;
}

bool is_true(const Json& value) { return value.is_boolean() && value.get<bool>(); }

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

/// Returns the steps of a component, which may be a Sequence of `list`; none where it is null.
std::vector<Json> steps_of(const Json& component, const char* list) {
  if (component.is_null()) return {};
  if (text_of(under(component, "type")) != "Sequence") return {component};
  std::vector<Json> steps;
  for (const Json& step : under(component, list)) steps.push_back(step);
  return steps;
}

/// The tokens of the vocabulary and the added ones, with fillers where ids have none.
GgufTokens tokens_in(const FolderTokenizer& from, const Json& json) {
  const Json& model = under(json, "model");
  std::map<int64_t, std::pair<std::string, int64_t>> by_id;
  int64_t told = 0;
  for (const auto& [text, id] : under(model, "vocab").items()) {
    if (!id.is_number_integer()) refuse_part(from, "model.vocab", "whole numbers as ids", id.dump());
    const bool is_unknown = text == text_of(under(model, "unk_token")) && !text.empty();
    const bool is_byte = is_true(under(model, "byte_fallback")) && text.size() == 6 && text.starts_with("<0x");
    by_id[id.get<int64_t>()] = {text, is_unknown ? kUnknownToken : is_byte ? kByteToken : kNormalToken};
  }
  for (const Json& added : under(json, "added_tokens")) {
    if (!under(added, "id").is_number_integer())
      refuse_part(from, "added_tokens", "whole numbers as ids", added.dump());
    auto& [text, type] = by_id[under(added, "id").get<int64_t>()];
    text = text_of(under(added, "content"));
    if (type != kUnknownToken) type = is_true(under(added, "special")) ? kControlToken : kUserToken;
    for (const char* key : {"lstrip", "rstrip", "single_word"})
      if (is_true(under(added, key)) && ++told == 1)
        log_warning(cat(from.where, ": ", key, " of the token ", printable(text), " is not in the GGUF file, which ",
                        "cannot say it: texts with blanks beside such tokens get other ids"));
  }
  if (by_id.empty() || by_id.begin()->first < 0 || by_id.rbegin()->first >= from.rows)
    refuse_part(from, "model.vocab", cat("tokens with ids below ", from.rows, ", the rows of the embedding"),
                by_id.empty() ? "none" : cat("the id ", by_id.rbegin()->first));
  GgufTokens tokens;
  for (int64_t id = 0; id < from.rows; ++id) {
    const auto found = by_id.find(id);
    tokens.texts.push_back(found == by_id.end() ? cat("[PAD", id, "]") : found->second.first);
    tokens.types.push_back(static_cast<double>(found == by_id.end() ? kUnusedToken : found->second.second));
  }
  return tokens;
}

std::vector<MergePair> merges_in(const FolderTokenizer& from, const Json& model) {
  std::vector<MergePair> merges;
  for (const Json& merge : under(model, "merges")) {
    const std::string line = text_of(merge);
    if (merge.is_array() && merge.size() == 2) {
      merges.emplace_back(text_of(merge[0]), text_of(merge[1]));
    } else if (const size_t blank = line.find(' '); blank != std::string::npos && blank == line.rfind(' ')) {
      merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
    } else if (!line.starts_with("#version")) {
      refuse_part(from, "model.merges", "pairs of pieces", merge.dump());
    }
  }
  return merges;
}

// ---- Byte-level BPE

bool has_nfc(const FolderTokenizer& from, const Json& json) {
  const std::vector<Json> steps = steps_of(under(json, "normalizer"), "normalizers");
  if (steps.empty()) return false;
  if (steps.size() > 1 || text_of(under(steps.front(), "type")) != "NFC")
    refuse_part(from, "normalizer", "none, or NFC", under(json, "normalizer").dump());
  return true;
}

/// What is found in the folder, in the form of the table.
struct FoundCuts {
  std::string pattern = {};
  bool cuts_digits = false, has_nfc = false, ignores_merges = false;
  std::string_view steps = {};

  bool is(const PreTokenizer& known) const {
    return known.pattern == pattern && known.steps == steps && known.cuts_digits == cuts_digits &&
           known.has_nfc == has_nfc && known.ignores_merges == ignores_merges;
  }
};

FoundCuts cuts_of(const FolderTokenizer& from, const Json& json) {
  FoundCuts cuts{.has_nfc = has_nfc(from, json),
                 .ignores_merges = is_true(under(under(json, "model"), "ignore_merges"))};
  const std::vector<Json> steps = steps_of(under(json, "pre_tokenizer"), "pretokenizers");
  const PreTokenizer* whole = find_pre_tokenizer_if(
      [&](const PreTokenizer& each) { return !each.steps.empty() && Json::parse(each.steps) == Json(steps); });
  if (whole != nullptr) {
    cuts.steps = whole->steps;
    return cuts;
  }
  const auto is_known = [&](const Json& step, bool is_last) {
    const std::string type = text_of(under(step, "type"));
    if (type == "Digits" && is_true(under(step, "individual_digits")) && cuts.pattern.empty() && !cuts.cuts_digits)
      return cuts.cuts_digits = true;
    if (type == "ByteLevel") {
      const bool has_own_pattern = under(step, "use_regex").is_null() || is_true(under(step, "use_regex"));
      return is_last && !is_true(under(step, "add_prefix_space")) && has_own_pattern == cuts.pattern.empty();
    }
    if (type != "Split" || !cuts.pattern.empty() || text_of(under(step, "behavior")) != "Isolated" ||
        is_true(under(step, "invert")))
      return false;
    cuts.pattern = text_of(under(under(step, "pattern"), "Regex"));
    return !cuts.pattern.empty();
  };
  bool is_whole = !steps.empty() && text_of(under(steps.back(), "type")) == "ByteLevel";
  for (size_t i = 0; is_whole && i < steps.size(); ++i) is_whole = is_known(steps[i], i + 1 == steps.size());
  if (!is_whole)
    refuse_part(from, "pre_tokenizer", "a pattern and ByteLevel, without a blank before the text",
                under(json, "pre_tokenizer").dump());
  return cuts;
}

void add_byte_level(const FolderTokenizer& from, const Json& json, std::vector<GgufEntry>& entries) {
  const FoundCuts cuts = cuts_of(from, json);
  const PreTokenizer* known = find_pre_tokenizer_if([&](const PreTokenizer& each) { return cuts.is(each); });
  if (known == nullptr)
    refuse_part(from, "pre_tokenizer", cat("a way to cut texts that is one of ", pre_tokenizer_names()),
                cat("the pattern '", cuts.pattern, "'", cuts.cuts_digits ? ", digits alone" : "",
                    cuts.has_nfc ? ", NFC" : "", cuts.ignores_merges ? ", ignore_merges" : ""));
  std::vector<std::string> merges;
  for (const auto& [left, right] : merges_in(from, under(json, "model"))) merges.push_back(cat(left, " ", right));
  entries.emplace_back("tokenizer.ggml.model", std::string("gpt2"));
  entries.emplace_back("tokenizer.ggml.pre", std::string(known->name));
  entries.emplace_back("tokenizer.ggml.merges", std::move(merges));
}

// ---- SentencePiece's pieces

/// Whether a blank is put before a text: by a normaliser, or by Metaspace.
bool has_space_prefix(const FolderTokenizer& from, const Json& json) {
  bool prefix = false, marks = false;
  for (const Json& step : steps_of(under(json, "normalizer"), "normalizers")) {
    const std::string type = text_of(under(step, "type"));
    if (type == "Prepend" && text_of(under(step, "prepend")) == "▁" && !marks)
      prefix = true;
    else if (type == "Replace" && text_of(under(under(step, "pattern"), "String")) == " " &&
             text_of(under(step, "content")) == "▁")
      marks = true;
    else
      refuse_part(from, "normalizer", "blanks that become ▁", step.dump());
  }
  for (const Json& step : steps_of(under(json, "pre_tokenizer"), "pretokenizers")) {
    const bool is_of_blanks =
        text_of(under(step, "type")) == "Split" && text_of(under(under(step, "pattern"), "String")) == " ";
    if (is_of_blanks && marks) continue;  // there are none
    if (text_of(under(step, "type")) != "Metaspace" || marks || under(step, "split") != Json(false))
      refuse_part(from, "pre_tokenizer", "none, or Metaspace without split", step.dump());
    marks = true;
    prefix = text_of(under(step, "prepend_scheme")) != "never";
    if (text_of(under(step, "prepend_scheme")) == "first")
      log_warning(cat(from.where, ": a blank comes before the first word of a text only; programs that run the GGUF ",
                      "file put one after each special token too"));
  }
  if (!marks) refuse_part(from, "normalizer", "blanks that become ▁", "none");
  return prefix;
}

/// Merges of one piece lie beside each other, in any order.
std::vector<std::pair<std::string, std::set<MergePair>>> grouped(const std::vector<MergePair>& merges) {
  std::vector<std::pair<std::string, std::set<MergePair>>> groups;
  for (const MergePair& merge : merges) {
    std::string piece = merge.first + merge.second;
    if (groups.empty() || groups.back().first != piece) groups.emplace_back(std::move(piece), std::set<MergePair>());
    groups.back().second.insert(merge);
  }
  return groups;
}

/// A piece that comes earlier among the merges gets a higher score. Pieces that are not merged have 0.
std::vector<float> scores_of(const FolderTokenizer& from, const GgufTokens& tokens,
                             const std::vector<MergePair>& merges) {
  std::map<std::string, float, std::less<>> ranks;
  for (const auto& [left, right] : merges) ranks.emplace(left + right, -static_cast<float>(ranks.size()));
  std::vector<float> scores;
  for (const std::string& text : tokens.texts) {
    const auto rank = ranks.find(text);
    scores.push_back(rank == ranks.end() ? 0 : rank->second);
  }
  std::vector<MergePair> made;
  const auto refuse = [&](auto key, auto expected, auto got) { refuse_part(from, key, expected, got); };
  for (const ScoredMerge& merge : merges_of(tokens, {scores.begin(), scores.end()}, refuse))
    made.emplace_back(tokens.texts[merge.left], tokens.texts[merge.right]);
  if (grouped(made) != grouped(merges))
    refuse_part(from, "model.merges", "the merges that SentencePiece makes of scores",
                cat("others (", merges.size(), ", where scores give ", made.size(), ")"));
  return scores;
}

void add_pieces(const FolderTokenizer& from, const Json& json, const GgufTokens& tokens,
                std::vector<GgufEntry>& entries) {
  const bool has_prefix = has_space_prefix(from, json);
  entries.emplace_back("tokenizer.ggml.model", std::string("llama"));
  entries.emplace_back("tokenizer.ggml.pre", std::string("default"));
  entries.emplace_back("tokenizer.ggml.scores", scores_of(from, tokens, merges_in(from, under(json, "model"))));
  entries.emplace_back("tokenizer.ggml.add_space_prefix", has_prefix);
  const std::string unknown = text_of(under(under(json, "model"), "unk_token"));
  const auto found = std::ranges::find(tokens.texts, unknown);
  if (!unknown.empty() && found != tokens.texts.end())
    entries.emplace_back("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(found - tokens.texts.begin()));
}

void add_special(const FolderTokenizer& from, std::vector<GgufEntry>& entries) {
  const auto add = [&](const char* key, std::optional<int64_t> id) {
    if (id) entries.emplace_back(cat("tokenizer.ggml.", key, "_token_id"), static_cast<uint32_t>(*id));
  };
  constexpr size_t kMostMoreEnds = 2;
  if (from.more_ends.size() > kMostMoreEnds)
    refuse_part(from, "eos_token_id", "at most three tokens that end an answer",
                cat(from.more_ends.size() + 1, " of them"));
  add("bos", from.bos);
  add("eos", from.eos);
  add("padding", from.pad);
  if (!from.more_ends.empty()) add("eot", from.more_ends[0]);
  if (from.more_ends.size() > 1) add("eom", from.more_ends[1]);
  entries.emplace_back("tokenizer.ggml.add_bos_token", from.adds_bos);
  entries.emplace_back("tokenizer.ggml.add_eos_token", from.adds_eos);
}

}  // namespace

std::vector<GgufEntry> gguf_tokenizer(const FolderTokenizer& tokenizer) {
  const Json json = parsed(tokenizer);
  const Json& model = under(json, "model");
  const std::string type = text_of(under(model, "type"));
  if ((type != "BPE" && !type.empty()) || !under(model, "vocab").is_object())
    refuse_part(tokenizer, "model.type", "BPE", type.empty() ? "none" : type);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!text_of(under(model, key)).empty()) refuse_part(tokenizer, key, "none", under(model, key).dump());
  const GgufTokens tokens = tokens_in(tokenizer, json);
  std::vector<GgufEntry> entries;
  if (is_true(under(model, "byte_fallback")))
    add_pieces(tokenizer, json, tokens, entries);
  else
    add_byte_level(tokenizer, json, entries);
  entries.emplace_back("tokenizer.ggml.tokens", tokens.texts);
  entries.emplace_back("tokenizer.ggml.token_type", std::vector<int32_t>(tokens.types.begin(), tokens.types.end()));
  add_special(tokenizer, entries);
  if (tokenizer.chat_template) entries.emplace_back("tokenizer.chat_template", *tokenizer.chat_template);
  return entries;
}

}  // namespace lancet
