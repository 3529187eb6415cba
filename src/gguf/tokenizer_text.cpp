// tokenizer.json and tokenizer_config.json of a GGUF file's metadata, as the tokenizers library would have them.
// Sources: llama.cpp, src/llama-vocab.cpp (which tokens are added, how SentencePiece's pieces are merged);
// transformers, convert_slow_tokenizer.py (merges of pieces that have scores).
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "architectures.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "piece_merges.h"
#include "pre_tokenizers.h"

namespace lancet {
namespace {

GgufTokens tokens_of(const GgufFile& file) {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens", kTypes = "tokenizer.ggml.token_type";
  GgufTokens tokens{file.texts(kTokens), file.numbers(kTypes)};
  if (tokens.texts.empty()) file.refuse(kTokens, "the texts of tokens", "none");
  if (tokens.types.empty()) tokens.types.assign(tokens.texts.size(), 1);
  if (tokens.types.size() != tokens.texts.size())
    file.refuse(kTypes, cat("a type for each of ", tokens.texts.size(), " tokens"), cat(tokens.types.size()));
  for (const double type : tokens.types)
    if (!(type >= 0 && type <= kByteToken) || std::floor(type) != type)
      file.refuse(kTypes, cat("whole numbers from 0 to ", kByteToken), cat(type));
  for (const std::string& text : tokens.texts)
    if (first_invalid_utf8(text)) file.refuse(kTokens, "tokens in UTF-8", "one of other bytes");
  return tokens;
}

/// Adds a JSON string.
void put_quoted(std::string& json, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  json += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (json += '\\') += c;
    else if (byte < 0x20)
      ((json += "\\u00") += kHex[byte >> 4U]) += kHex[byte & 15U];
    else
      json += c;
  }
  json += '"';
}

/// `has_marks`: blanks in texts become marks, and nothing is put before them. There SentencePiece looks for runs of
/// blanks among the marks; the file has these tokens with blanks.
void put_added_tokens(const GgufTokens& tokens, bool has_marks, std::string& json) {
  json += "\"added_tokens\":[";
  bool first = true;
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    const auto type = static_cast<int64_t>(tokens.types[id]);
    if ((type != kUnknownToken && type != kControlToken && type != kUserToken) || tokens.texts[id].empty()) continue;
    json += cat(first ? "" : ",", "{\"id\":", id, ",\"content\":");
    put_quoted(json, tokens.texts[id]);
    const bool is_among_marks = has_marks && type == kUserToken && tokens.texts[id].find(' ') != std::string::npos;
    json += cat(R"(,"single_word":false,"lstrip":false,"rstrip":false,"normalized":)",
                is_among_marks ? "true" : "false", ",\"special\":", type == kUserToken ? "false}" : "true}");
    first = false;
  }
  json += "]";
}

/// Of texts that several tokens have, the first token counts.
void put_vocabulary(const GgufTokens& tokens, std::string& json) {
  std::unordered_map<std::string_view, size_t> seen;
  json += "\"vocab\":{";
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    if (!seen.emplace(tokens.texts[id], id).second) continue;
    if (id > 0) json += ",";
    put_quoted(json, tokens.texts[id]);
    json += cat(":", id);
  }
  json += "}";
}

/// The token that stands before every text, where one does.
std::optional<size_t> bos_of(const GgufFile& file, const GgufTokens& tokens, std::string_view flag, const char* token) {
  const std::string key = cat("tokenizer.ggml.", token);
  const std::optional<int64_t> id = file.whole(key);
  if (!file.flag(flag).value_or(false) || !id) return std::nullopt;
  if (*id < 0 || *id >= std::ssize(tokens.texts))
    file.refuse(key, cat("one of ", tokens.texts.size(), " tokens"), cat(*id));
  return static_cast<size_t>(*id);
}

void put_frame(const GgufFile& file, const GgufTokens& tokens, bool adds_bos, std::string& json) {
  constexpr std::string_view kAddsBos = "tokenizer.ggml.add_bos_token";
  std::optional<size_t> before = bos_of(file, tokens, kAddsBos, "bos_token_id");
  const std::optional<int64_t> bos = file.whole("tokenizer.ggml.bos_token_id");
  if (!file.has(kAddsBos) && adds_bos && bos && *bos >= 0 && *bos < std::ssize(tokens.texts))
    before = static_cast<size_t>(*bos);
  const std::optional<size_t> behind = bos_of(file, tokens, "tokenizer.ggml.add_eos_token", "eos_token_id");
  const auto piece = [&](size_t id) {
    std::string text = R"({"SpecialToken":{"id":)";
    put_quoted(text, tokens.texts[id]);
    return text + R"(,"type_id":0}})";
  };
  std::string single, special;
  if (before) single += piece(*before) + ",";
  single += R"({"Sequence":{"id":"A","type_id":0}})";
  if (behind) single += "," + piece(*behind);
  for (const std::optional<size_t>& id : {before, behind != before ? behind : std::nullopt}) {
    if (!id) continue;
    if (!special.empty()) special += ",";
    put_quoted(special, tokens.texts[*id]);
    special += R"(:{"id":)";
    put_quoted(special, tokens.texts[*id]);
    special += cat(",\"ids\":[", *id, "],\"tokens\":[");
    put_quoted(special, tokens.texts[*id]);
    special += "]}";
  }
  json += cat(R"("post_processor":{"type":"TemplateProcessing","single":[)", single, "],\"pair\":[", single,
              R"(,{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{)", special, "}}");
}

// ---- Byte-level BPE

/// Adds the steps that cut a text, without brackets.
void put_cuts(const PreTokenizer& pre, std::string& json) {
  if (!pre.steps.empty()) {
    json += pre.steps.substr(1, pre.steps.size() - 2);
    return;
  }
  if (pre.cuts_digits) json += R"({"type":"Digits","individual_digits":true},)";
  if (!pre.pattern.empty()) {
    json += R"({"type":"Split","pattern":{"Regex":)";
    put_quoted(json, pre.pattern);
    json += R"(},"behavior":"Isolated","invert":false},)";
  }
  json += cat(R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":)",
              pre.pattern.empty() ? "true" : "false", "}");
}

void put_byte_level(const GgufFile& file, const PreTokenizer& pre, const GgufTokens& tokens, std::string& json) {
  json += pre.has_nfc ? R"("normalizer":{"type":"NFC"},)" : R"("normalizer":null,)";
  json += R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[)";
  put_cuts(pre, json);
  json += "]},";
  put_frame(file, tokens, pre.adds_bos, json);
  json += R"(,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},)";
  json += R"("model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,)";
  json += cat(R"("end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":)",
              pre.ignores_merges ? "true," : "false,");
  put_vocabulary(tokens, json);
  json += ",\"merges\":[";
  bool first = true;
  for (const std::string& merge : file.texts("tokenizer.ggml.merges")) {
    if (first_invalid_utf8(merge)) file.refuse("tokenizer.ggml.merges", "texts in UTF-8", "another");
    if (!first) json += ",";
    put_quoted(json, merge);
    first = false;
  }
  json += "]}";
}

// ---- SentencePiece's pieces with scores

std::vector<ScoredMerge> scored_merges_of(const GgufFile& file, const GgufTokens& tokens) {
  constexpr std::string_view kScores = "tokenizer.ggml.scores";
  const std::vector<double> scores = file.numbers(kScores);
  if (scores.size() != tokens.texts.size())
    file.refuse(kScores, cat("a score for each of ", tokens.texts.size(), " tokens"), cat(scores.size()));
  return merges_of(tokens, scores, [&](auto key, auto expected, auto got) { file.refuse(key, expected, got); });
}

void put_sentence_pieces(const GgufFile& file, const GgufTokens& tokens, std::string& json) {
  const bool has_prefix = file.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  constexpr std::string_view kBlank = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";
  json += has_prefix ? cat(R"("normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)",
                           kBlank, "]},")
                     : cat("\"normalizer\":", kBlank, ",");
  json += "\"pre_tokenizer\":null,";
  put_frame(file, tokens, true, json);
  json += R"(,"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},)";
  json += R"({"type":"ByteFallback"},{"type":"Fuse"})";
  if (has_prefix) json += R"(,{"type":"Strip","content":" ","start":1,"stop":0})";
  json += R"(]},"model":{"type":"BPE","dropout":null,"unk_token":)";
  const std::optional<int64_t> unknown = file.whole("tokenizer.ggml.unknown_token_id");
  if (unknown && *unknown >= 0 && *unknown < std::ssize(tokens.texts))
    put_quoted(json, tokens.texts[static_cast<size_t>(*unknown)]);
  else
    json += "null";
  json += R"(,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":true,)";
  json += R"("ignore_merges":false,)";
  put_vocabulary(tokens, json);
  json += ",\"merges\":[";
  bool first = true;
  for (const ScoredMerge& merge : scored_merges_of(file, tokens)) {
    json += first ? "[" : ",[";
    put_quoted(json, tokens.texts[merge.left]);
    json += ',';
    put_quoted(json, tokens.texts[merge.right]);
    json += ']';
    first = false;
  }
  json += "]}";
}

}  // namespace

std::string tokenizer_text_of(const GgufFile& file) {
  constexpr std::string_view kModel = "tokenizer.ggml.model", kPre = "tokenizer.ggml.pre";
  const std::string model = file.text(kModel).value_or("");
  if (model != "gpt2" && model != "llama")
    file.refuse(kModel, "gpt2 (byte-level BPE) or llama (SentencePiece's pieces with scores)",
                cat("'", printable(model), "', which lancet does not read: take the model's safetensors"));
  const GgufTokens tokens = tokens_of(file);
  std::string json = R"({"version":"1.0","truncation":null,"padding":null,)";
  const bool has_marks = model == "llama" && !file.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  put_added_tokens(tokens, has_marks, json);
  json += ",";
  if (model == "llama") {
    put_sentence_pieces(file, tokens, json);
  } else {
    const std::string name = file.text(kPre).value_or("default");
    const PreTokenizer* pre = find_pre_tokenizer(name);
    if (pre == nullptr)
      file.refuse(kPre, cat("a way to cut texts that lancet knows (", pre_tokenizer_names(), ")"),
                  cat("'", printable(name), "': take the model's safetensors"));
    put_byte_level(file, *pre, tokens, json);
  }
  return json + "}";
}

std::string tokenizer_config_text_of(const GgufFile& file) {
  constexpr std::pair<const char*, const char*> kNames[] = {{"tokenizer.ggml.bos_token_id", "bos_token"},
                                                            {"tokenizer.ggml.eos_token_id", "eos_token"},
                                                            {"tokenizer.ggml.unknown_token_id", "unk_token"},
                                                            {"tokenizer.ggml.padding_token_id", "pad_token"}};
  const GgufTokens tokens = tokens_of(file);
  OrderedJson config = OrderedJson::object();
  for (const auto& [key, name] : kNames) {
    const std::optional<int64_t> id = file.whole(key);
    if (!id) continue;
    if (*id < 0 || *id >= std::ssize(tokens.texts))
      file.refuse(key, cat("one of ", tokens.texts.size(), " tokens"), cat(*id));
    config[name] = tokens.texts[static_cast<size_t>(*id)];
  }
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  return config.dump(2) + "\n";
}

}  // namespace lancet
