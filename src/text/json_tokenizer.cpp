// tokenizer.json, or vocab.json and merges.txt. Added tokens are split out of the text. The rest is normalised, cut
// into words, and given to the model word by word. Special tokens are put around the result. If there is a
// tokenizer.json, it alone decides: transformers 5 rebuilds some pipelines (LlamaTokenizer) from the vocabulary, and
// then differs from the file for repeated spaces, unknown characters and special tokens inside the text.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text/tokenizer.h"
#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/tokenizer_config.h"
#include "lancet/tokenizer_files/tokenizer_json.h"
#include "steps/byte_alphabet.h"
#include "steps/decoder.h"
#include "steps/normalized_text.h"
#include "steps/normalizer.h"
#include "steps/words.h"
#include "vocab_merges.h"
#include "word_model.h"

namespace lancet {
namespace {

ByteSpan to_span(TextPiece piece) { return {static_cast<int64_t>(piece.begin), static_cast<int64_t>(piece.end)}; }

class JsonTokenizer : public Tokenizer {
 public:
  JsonTokenizer(TokenizerJson spec, const std::filesystem::path& file);

  Encoding encode(std::string_view text, SpecialTokens special) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(pieces_.size()); }
  std::string piece(TokenId id) const override;
  std::optional<TokenId> bos_id() const override { return bos_; }
  std::optional<TokenId> eos_id() const override { return eos_; }
  std::string description() const override;

 private:
  struct Piece {
    std::string text;
    std::string decoded;  // input for the decoder: an added token's normalised form
    bool special = false;
    bool present = false;
    bool added = false;
  };

  void index_pieces();
  void add_token(const AddedToken& token);
  void load_special_names(const std::filesystem::path& folder);
  void encode_segment(NormalizedText segment, Encoding& out) const;
  void tokenize(std::string_view word, std::vector<WordToken>& out) const;

  std::string where_;  // for messages
  std::string file_name_;
  TokenizerJson spec_;
  std::unique_ptr<const WordModel> model_;
  /// Whether the pre-tokenizer's last step spells bytes. This step is not among the others: it spells each word
  /// separately, when the word first occurs.
  bool spells_words_ = false;
  mutable WordCache words_;
  std::vector<Piece> pieces_;       // by id
  AddedTokenFinder in_text_;        // added tokens that are searched in the original text
  AddedTokenFinder in_normalized_;  // added tokens that are searched in the normalised text
  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
};

JsonTokenizer::JsonTokenizer(TokenizerJson spec, const std::filesystem::path& file)
    : where_(cat("tokenizer: ", file.string())),
      file_name_(file.filename().string()),
      spec_(std::move(spec)),
      model_(make_word_model(std::move(spec_.model), where_)) {
  if (!spec_.pre_tokenizer.empty() && std::holds_alternative<SpellBytesStep>(spec_.pre_tokenizer.back())) {
    spec_.pre_tokenizer.pop_back();
    spells_words_ = true;
  }
  index_pieces();
  for (const AddedToken& token : spec_.added_tokens) add_token(token);
  for (const std::vector<TokenId>* ids : {&spec_.prefix, &spec_.suffix}) {
    for (const TokenId id : *ids) piece(id);  // throws for an id that the vocabulary does not have
  }
  load_special_names(file.parent_path());
}

void JsonTokenizer::index_pieces() {
  TokenId largest = -1;
  TokenId known = static_cast<TokenId>(spec_.added_tokens.size());
  model_->for_each_piece([&](const std::string&, TokenId id) {
    largest = std::max(largest, id);
    ++known;
  });
  for (const AddedToken& token : spec_.added_tokens) largest = std::max(largest, token.id);
  // Ids are indices of a table here, and of the embedding matrix later. Such a large gap means a damaged file.
  if (largest > 2 * known + 65536) {
    throw TokenizerError(cat(where_, ": the largest id is ", largest, ", but there are only ", known, " tokens"));
  }
  pieces_.resize(static_cast<size_t>(largest + 1));
  model_->for_each_piece([&](const std::string& text, TokenId id) {
    pieces_[static_cast<size_t>(id)] = {text, text, false, true, false};
  });
}

/// A token with the id of a piece replaces the piece: transformers, too, then decodes the token.
void JsonTokenizer::add_token(const AddedToken& token) {
  Piece& piece = pieces_[static_cast<size_t>(token.id)];
  const auto in_model = model_->id_of(token.content);
  if ((in_model && *in_model != token.id) || (piece.added && piece.text != token.content)) {
    throw TokenizerError(cat(where_, ": added_tokens: \"", token.content, "\" has id ", token.id,
                             ", but model.vocab or another added token disagrees; save the tokenizer again"));
  }
  NormalizedText normalized(token.content, 0, token.content.size());
  if (token.normalized) normalize(spec_.normalizer, normalized);
  // As in Hugging Face 0.23, the normalised form (with Prepend a leading "▁") was matched, so it is also what is
  // decoded.
  piece = {token.content, normalized.text(), token.special, true, true};
  if (normalized.text().empty()) return;
  (token.normalized ? in_normalized_ : in_text_).add(normalized.text(), token);
}

void JsonTokenizer::load_special_names(const std::filesystem::path& folder) {
  const TokenizerConfig config = load_tokenizer_config(folder);
  const auto id_of = [&](const std::optional<std::string>& name, std::string_view key) -> std::optional<TokenId> {
    if (!name) return std::nullopt;
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (pieces_[id].present && pieces_[id].text == *name) return static_cast<TokenId>(id);
    }
    throw TokenizerError(cat("tokenizer: ", (folder / "tokenizer_config.json").string(), ": ", key, ": \"", *name,
                             "\" is not in ", file_name_));
  };
  eos_ = id_of(config.eos_token ? config.eos_token : spec_.eos_token, "eos_token");
  bos_ = id_of(config.bos_token ? config.bos_token : spec_.bos_token, "bos_token");
  if (!spec_.prefix.empty()) bos_ = spec_.prefix.front();
}

Encoding JsonTokenizer::encode(std::string_view text, SpecialTokens special) const {
  require_utf8(text);
  Encoding out;
  const auto add = [&](TokenId id, ByteSpan span) {
    out.ids.push_back(id);
    out.spans.push_back(span);
  };
  if (special == SpecialTokens::kAdd) {
    for (const TokenId id : spec_.prefix) add(id, {0, 0});
  }
  for (const TextPart& part : in_text_.split(text)) {
    if (part.token != nullptr) {
      add(part.token->id, to_span({part.begin, part.end}));
      continue;
    }
    // Each stretch between added tokens is normalised separately, so Prepend acts on each.
    NormalizedText normalized(text, part.begin, part.end);
    normalize(spec_.normalizer, normalized);
    for (const TextPart& inner : in_normalized_.split(normalized.text())) {
      if (inner.token != nullptr) {
        add(inner.token->id, to_span(normalized.origin(inner.begin, inner.end)));
      } else {
        encode_segment(normalized.slice(inner.begin, inner.end), out);
      }
    }
  }
  const auto size = static_cast<int64_t>(text.size());
  if (special == SpecialTokens::kAdd) {
    for (const TokenId id : spec_.suffix) add(id, {size, size});
  }
  return out;
}

void JsonTokenizer::encode_segment(NormalizedText segment, Encoding& out) const {
  const WordsOfText cut = cut_words(std::move(segment), spec_.pre_tokenizer);
  std::vector<WordToken> tokens;
  for (const TextPiece& word : cut.words) {
    tokens.clear();
    tokenize(std::string_view(cut.text.text()).substr(word.begin, word.end - word.begin), tokens);
    for (const WordToken& token : tokens) {
      out.ids.push_back(token.id);
      out.spans.push_back(to_span(cut.text.origin(word.begin + token.begin, word.begin + token.end)));
    }
  }
}

/// Converts positions in the word's spelling to positions in the word. Each byte of the word is one character of the
/// spelling.
void to_byte_places(std::string_view spelling, std::vector<WordToken>& tokens) {
  std::vector<size_t> byte_at(spelling.size() + 1);
  size_t byte = 0;
  for (size_t at = 0; at < spelling.size(); at += utf8_bytes(spelling[at])) byte_at[at] = byte++;
  byte_at.back() = byte;
  for (WordToken& token : tokens) token = {token.id, byte_at[token.begin], byte_at[token.end]};
}

void JsonTokenizer::tokenize(std::string_view word, std::vector<WordToken>& out) const {
  if (words_.find(word, out)) return;
  if (spells_words_) {
    const std::string spelling = spell_bytes(word);
    model_->tokenize(spelling, out);
    to_byte_places(spelling, out);
  } else {
    model_->tokenize(word, out);
  }
  words_.keep(word, out);
}

std::string JsonTokenizer::description() const {
  const auto spells = [](const auto& step) { return std::holds_alternative<SpellBytesStep>(step); };
  const bool is_byte_level = spells_words_ ||
                             std::any_of(spec_.pre_tokenizer.begin(), spec_.pre_tokenizer.end(), spells) ||
                             std::any_of(spec_.normalizer.begin(), spec_.normalizer.end(), spells);
  return cat(model_->name(), " (", is_byte_level ? "byte level" : "SentencePiece kind", "), ", file_name_);
}

std::string JsonTokenizer::decode(std::span<const TokenId> ids) const {
  std::vector<std::string> pieces;
  for (const TokenId id : ids) {
    // A model's vocabulary may be padded beyond the tokenizer's. Such ids have no text, as in Hugging Face.
    if (id < 0 || id >= vocab_size()) continue;
    const Piece& piece = pieces_[static_cast<size_t>(id)];
    if (piece.present && !piece.special) pieces.push_back(piece.decoded);
  }
  return spec_.decoder ? decode_pieces(*spec_.decoder, std::move(pieces)) : join(pieces, " ");
}

std::string JsonTokenizer::piece(TokenId id) const {
  if (id < 0 || id >= vocab_size() || !pieces_[static_cast<size_t>(id)].present) {
    throw TokenizerError(cat(where_, ": no token has the id ", id, " (vocabulary of ", vocab_size(), ")"));
  }
  return pieces_[static_cast<size_t>(id)].text;
}

}  // namespace

std::unique_ptr<Tokenizer> open_bpe_tokenizer(const std::filesystem::path& tokenizer_json) {
  return std::make_unique<JsonTokenizer>(load_tokenizer_json(tokenizer_json), tokenizer_json);
}

std::unique_ptr<Tokenizer> open_vocab_and_merges(const std::filesystem::path& folder) {
  return std::make_unique<JsonTokenizer>(load_vocab_and_merges(folder), folder / "vocab.json");
}

}  // namespace lancet
