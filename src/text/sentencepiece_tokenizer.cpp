// Runs tokenizer.model with libsentencepiece, and uses its alignment of pieces to the text. As in sentencepiece, text
// that looks like a control piece ("<s>") is text, unless tokenizer_config.json lists it as an added token.
#include <sentencepiece_processor.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text/tokenizer.h"
#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/tokenizer_config.h"
#include "sentencepiece_proto.h"
#include "sentencepiece_tokens.h"

namespace lancet {
namespace {

/// Whether the next piece of a text loses its leading space.
struct TextStart {
  bool strips = false;
};

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::filesystem::path& file, SentencePieceOptions options, SentencePieceTokens tokens);

  Encoding encode(std::string_view text, SpecialTokens special) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  int64_t vocab_size() const override { return vocab_size_; }
  std::string piece(TokenId id) const override;
  std::optional<TokenId> bos_id() const override { return optional_id(processor_.bos_id()); }
  std::optional<TokenId> eos_id() const override { return optional_id(processor_.eos_id()); }
  std::string description() const override;

 private:
  static std::optional<TokenId> optional_id(int id) { return id < 0 ? std::nullopt : std::optional<TokenId>(id); }
  void load(const std::filesystem::path& file);
  void require_supported() const;
  void add_token(const AddedToken& token);
  void encode_stretch(std::string_view text, TextPart part, Encoding& out) const;
  std::string text_of(int piece, TextStart& start) const;

  std::string where_;  // for messages
  std::string file_name_;
  SentencePieceOptions options_;
  SentencePieceTokens tokens_;
  AddedTokenFinder finder_;
  /// Added tokens by id, from tokens_. A token with the id of a piece replaces the piece (InternLM2 has pieces for this
  /// purpose).
  std::unordered_map<TokenId, const AddedToken*> added_;
  int64_t vocab_size_ = 0;
  ModelSettings settings_;
  sentencepiece::SentencePieceProcessor processor_;
  sentencepiece::SentencePieceProcessor plain_;  // puts no dummy prefix before the text
};

SentencePieceTokenizer::SentencePieceTokenizer(const std::filesystem::path& file, SentencePieceOptions options,
                                               SentencePieceTokens tokens)
    : where_(cat("tokenizer: ", file.string())),
      file_name_(file.filename().string()),
      options_(options),
      tokens_(std::move(tokens)) {
  load(file);
  require_supported();
  vocab_size_ = processor_.GetPieceSize();
  for (const AddedToken& token : tokens_.added) add_token(token);
}

void SentencePieceTokenizer::add_token(const AddedToken& token) {
  const auto fail = [&](std::string_view what) {
    throw TokenizerError(cat(where_, ": the added token ", token.id, " \"", token.content, "\" ", what,
                             "; save the tokenizer as tokenizer.json "
                             "(AutoTokenizer.from_pretrained(folder).save_pretrained(folder) in transformers)"));
  };
  const int64_t n_pieces = processor_.GetPieceSize();
  if (token.single_word) fail("has single_word: true, which is not supported here");
  // Ids are indices of the embedding matrix. Such a large gap means a damaged file.
  if (token.id > 2 * (n_pieces + static_cast<int64_t>(tokens_.added.size())) + 65536)
    fail(cat("is far beyond the ", n_pieces, " pieces"));
  if (!added_.emplace(token.id, &token).second) fail("has the id of another one");
  finder_.add(token.content, token);
  vocab_size_ = std::max(vocab_size_, token.id + 1);
}

void SentencePieceTokenizer::load(const std::filesystem::path& file) {
  const std::string content = read_model_file(file, "tokenizer");
  if (is_rank_list(content)) {
    // The list has neither the pattern that cuts words nor the special tokens, and those of Llama 3 and 3.1 differ.
    throw TokenizerError(
        cat(where_,
            ": a list of byte-level BPE ranks (tiktoken, Llama 3), expected a SentencePiece model; "
            "the ranks alone are not all of a tokenizer: put the tokenizer.json of the model's Hugging "
            "Face checkpoint beside it"));
  }
  const auto status = processor_.LoadFromSerializedProto(content);
  if (!status.ok()) throw TokenizerError(cat(where_, ": not a SentencePiece model: ", status.ToString()));
  settings_ = parse_settings(content);
  if (!settings_.add_dummy_prefix) tokens_.prefix = PrependScheme::kNever;
  if (tokens_.prefix != PrependScheme::kAlways) {
    const auto again = plain_.LoadFromSerializedProto(without_dummy_prefix(content));
    if (!again.ok()) throw TokenizerError(cat(where_, ": not a SentencePiece model: ", again.ToString()));
  }
}

void SentencePieceTokenizer::require_supported() const {
  if (settings_.treat_whitespace_as_suffix)
    throw TokenizerError(cat(where_, ": treat_whitespace_as_suffix is not supported"));
  if (!settings_.escape_whitespaces) throw TokenizerError(cat(where_, ": escape_whitespaces: false is not supported"));
  if (settings_.has_denormalizer) throw TokenizerError(cat(where_, ": a denormalizer is not supported"));
  const auto require = [&](bool added, const std::optional<TokenId>& id, std::string_view name) {
    if (added && !id) {
      throw TokenizerError(cat(where_, ": has no ", name, " piece, but one is to be added; set add_", name,
                               "_token: false in tokenizer_config.json"));
    }
  };
  require(options_.add_bos, bos_id(), "bos");
  require(options_.add_eos, eos_id(), "eos");
}

void SentencePieceTokenizer::encode_stretch(std::string_view text, TextPart part, Encoding& out) const {
  const bool has_prefix =
      tokens_.prefix == PrependScheme::kAlways || (tokens_.prefix == PrependScheme::kFirst && part.begin == 0);
  // a std::string, because string_view in 0.1.96 is a class of the library
  const std::string stretch(text.substr(part.begin, part.end - part.begin));
  const std::string serialized = (has_prefix ? processor_ : plain_).EncodeAsSerializedProto(stretch);
  auto pieces = parse_alignment(serialized, stretch);
  if (!pieces) {
    throw TokenizerError(cat(where_, ": sentencepiece failed to encode \"", stretch.substr(0, 80), "\""));
  }
  share_characters(*pieces, has_prefix);
  const auto begin = static_cast<int64_t>(part.begin);
  for (const AlignedPiece& piece : *pieces) {
    out.ids.push_back(piece.id);
    out.spans.push_back({begin + piece.span.begin, begin + piece.span.end});
  }
}

Encoding SentencePieceTokenizer::encode(std::string_view text, SpecialTokens special) const {
  require_utf8(text);
  Encoding out;
  const auto add = [&](TokenId id, size_t begin, size_t end) {
    out.ids.push_back(id);
    out.spans.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(end)});
  };
  if (special == SpecialTokens::kAdd && options_.add_bos) add(*bos_id(), 0, 0);
  for (const TextPart& part : finder_.split(text)) {
    if (part.token != nullptr) {
      add(part.token->id, part.begin, part.end);
    } else {
      encode_stretch(text, part, out);
    }
  }
  if (special == SpecialTokens::kAdd && options_.add_eos) add(*eos_id(), text.size(), text.size());
  return out;
}

/// Returns a piece as text: "▁" is a space, except if it is stripped at the text's start.
std::string SentencePieceTokenizer::text_of(int piece, TextStart& start) const {
  const std::string& text = processor_.IdToPiece(piece);
  std::string out;
  size_t from = 0;
  if (start.strips && text.compare(0, kSpaceSymbol.size(), kSpaceSymbol) == 0) {
    from = kSpaceSymbol.size();
    start.strips = settings_.remove_extra_whitespaces;
  }
  for (size_t at = text.find(kSpaceSymbol, from); at != std::string::npos; at = text.find(kSpaceSymbol, from)) {
    out.append(text, from, at - from) += ' ';
    from = at + kSpaceSymbol.size();
  }
  return out.append(text, from);
}

/// Written here because 0.1.96 and 0.1.97 strip different numbers of leading spaces. It does what 0.1.97 and later do:
/// the first piece with text loses its leading space, and if the model removes extra white space, so do all pieces
/// before the text begins.
std::string SentencePieceTokenizer::decode(std::span<const TokenId> ids) const {
  std::string out;
  std::string bytes;
  TextStart start{tokens_.prefix != PrependScheme::kNever || settings_.remove_extra_whitespaces};
  const auto flush = [&] {
    out += replace_invalid_utf8(bytes);
    bytes.clear();
  };
  for (const TokenId id : ids) {
    const auto added = added_.find(id);
    if (added != added_.end() && !added->second->special) {
      flush();
      out += added->second->content;
      start.strips = false;
    }
    if (added != added_.end()) continue;
    // a model's vocabulary may be padded beyond the tokenizer's
    if (id < 0 || id >= processor_.GetPieceSize()) continue;
    const int piece = static_cast<int>(id);
    if (processor_.IsControl(piece) || processor_.IsUnknown(piece)) continue;
    if (processor_.IsByte(piece)) {
      bytes += static_cast<char>(std::stoi(processor_.IdToPiece(piece).substr(3, 2), nullptr, 16));
      continue;
    }
    flush();
    start.strips = start.strips && out.empty();
    out += text_of(piece, start);
  }
  flush();
  return out;
}

std::string SentencePieceTokenizer::piece(TokenId id) const {
  if (id < 0 || id >= vocab_size()) {
    throw TokenizerError(cat(where_, ": no piece has the id ", id, " (vocabulary of ", vocab_size(), ")"));
  }
  if (const auto added = added_.find(id); added != added_.end()) return added->second->content;
  if (id >= processor_.GetPieceSize()) throw TokenizerError(cat(where_, ": no token has the id ", id));
  return processor_.IdToPiece(static_cast<int>(id));
}

std::string SentencePieceTokenizer::description() const {
  const std::string_view kinds[] = {"", "Unigram", "BPE", "words", "characters"};
  return cat("SentencePiece ", settings_.model_type < 5 ? kinds[settings_.model_type] : "", ", ", file_name_);
}

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::filesystem::path& tokenizer_model,
                                                        SentencePieceOptions options) {
  return open_sentencepiece_tokenizer(tokenizer_model, options, {});
}

std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::filesystem::path& tokenizer_model,
                                                        SentencePieceOptions options, SentencePieceTokens tokens) {
  return std::make_unique<SentencePieceTokenizer>(tokenizer_model, options, std::move(tokens));
}

}  // namespace lancet
