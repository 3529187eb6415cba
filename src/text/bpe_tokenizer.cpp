// BPE of the SentencePiece kind and of the byte level, from tokenizer.json or from vocab.json and merges.txt: added
// tokens are split out of the text, the rest is normalised, cut into words and merged; special tokens go around it. A
// tokenizer.json alone decides: transformers 5 rebuilds some pipelines (LlamaTokenizer) from the vocabulary and then
// differs from the file on repeated spaces, unknown characters and special tokens within the text.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "bpe_model.h"
#include "byte_alphabet.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text/tokenizer.h"
#include "lancet/tokenizer_files/json_node.h"
#include "lancet/tokenizer_files/tokenizer_config.h"
#include "lancet/tokenizer_files/tokenizer_json.h"
#include "normalized_text.h"
#include "vocab_merges.h"

namespace lancet {
namespace {

// Pieces back to text by the decoder of a tokenizer.json.
// Source: Hugging Face tokenizers, decoders/.

using Pieces = std::vector<std::string>;

std::string with_replaced(const std::string& text, std::string_view pattern, std::string_view content) {
  std::string out;
  size_t from = 0;
  for (size_t at = text.find(pattern); at != std::string::npos; at = text.find(pattern, from)) {
    out.append(text, from, at - from).append(content);
    from = at + pattern.size();
  }
  return out.append(text, from);
}

size_t bytes_of(const Pieces& pieces) {
  size_t bytes = 0;
  for (const std::string& piece : pieces) bytes += piece.size();
  return bytes;
}

size_t count_of(std::string_view pattern, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(pattern); at != std::string_view::npos; at = text.find(pattern, at + pattern.size()))
    ++count;
  return count;
}

/// Throws where the step would make the pieces longer than any real decoder does.
void require_decoded_room(const ReplaceStep& step, const Pieces& pieces, size_t most) {
  size_t removed = 0, added = 0;
  for (const std::string& piece : pieces) {
    const size_t count = count_of(step.pattern, piece);
    removed += count * step.pattern.size();
    added += count * step.content.size();
  }
  if (bytes_of(pieces) - removed + added <= most) return;
  throw TokenizerError(cat("tokenizer: the decoder makes a text longer than ", most,
                           " bytes of the tokens' own; such a tokenizer.json is damaged or made to take all memory: "
                           "download the model's own"));
}

Pieces decode_step(const ReplaceStep& step, Pieces pieces) {
  for (std::string& piece : pieces) piece = with_replaced(piece, step.pattern, step.content);
  return pieces;
}

/// The byte of "<0xE2>".
std::optional<char> byte_of(const std::string& piece) {
  if (piece.size() != 6 || piece.compare(0, 3, "<0x") != 0 || piece[5] != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  if (error != std::errc() || end != piece.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

/// A run of byte pieces is text when the whole run is valid, else one U+FFFD for every byte of it.
void flush_bytes(std::string& bytes, Pieces& out) {
  if (bytes.empty()) return;
  if (first_invalid_utf8(bytes)) {
    for (size_t i = 0; i < bytes.size(); ++i) out.emplace_back(kReplacementCharacter);
  } else {
    out.push_back(bytes);
  }
  bytes.clear();
}

Pieces decode_step(const ByteFallbackStep&, Pieces pieces) {
  Pieces out;
  std::string bytes;
  for (std::string& piece : pieces) {
    if (const auto byte = byte_of(piece)) {
      bytes += *byte;
    } else {
      flush_bytes(bytes, out);
      out.push_back(std::move(piece));
    }
  }
  flush_bytes(bytes, out);
  return out;
}

Pieces decode_step(const FuseStep&, Pieces pieces) { return {join(pieces, "")}; }

Pieces decode_step(const StripStep& step, Pieces pieces) {
  const size_t length = step.content.size();
  for (std::string& piece : pieces) {
    for (int64_t i = 0; i < step.start && piece.compare(0, length, step.content) == 0; ++i) piece.erase(0, length);
    for (int64_t i = 0; i < step.stop && piece.size() >= length; ++i) {
      if (piece.compare(piece.size() - length, length, step.content) != 0) break;
      piece.resize(piece.size() - length);
    }
  }
  return pieces;
}

/// The first piece loses its replacements altogether when one may have been put before the text.
Pieces decode_step(const Metaspace& step, Pieces pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool dropped = i == 0 && step.prepend != PrependScheme::kNever;
    pieces[i] = with_replaced(pieces[i], step.replacement, dropped ? "" : " ");
  }
  return pieces;
}

/// A piece with a character that stands for no byte (an added token) is its own text.
Pieces decode_step(const ByteLevelStep&, const Pieces& pieces) {
  std::string bytes;
  for (const std::string& piece : pieces) bytes += read_spelling(piece).value_or(piece);
  return {replace_broken_utf8(bytes)};
}

/// Runs the steps over the pieces and joins what is left.
std::string decode_pieces(const std::vector<DecoderStep>& steps, std::vector<std::string> pieces) {
  const size_t most = kMostGrowth * bytes_of(pieces) + kAlwaysRoom;
  for (const DecoderStep& step : steps) {
    if (const auto* replaced = std::get_if<ReplaceStep>(&step)) require_decoded_room(*replaced, pieces, most);
    pieces = std::visit([&](const auto& kind) { return decode_step(kind, std::move(pieces)); }, step);
  }
  return join(pieces, "");
}

class BpeTokenizer : public Tokenizer {
 public:
  BpeTokenizer(TokenizerJson spec, const std::filesystem::path& file);

  Encoding encode(std::string_view text, SpecialTokens special) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(pieces_.size()); }
  std::string piece(TokenId id) const override;
  std::optional<TokenId> bos_id() const override { return bos_; }
  std::optional<TokenId> eos_id() const override { return eos_; }
  std::string description() const override {
    return cat("BPE (", is_byte_level() ? "byte level" : "SentencePiece kind", "), ", file_name_);
  }

 private:
  struct Piece {
    std::string text;
    std::string decoded;  // what the decoder is given: an added token's normalised form
    bool special = false;
    bool present = false;
  };

  void index_pieces();
  void add_token(const AddedToken& token);
  void load_special_names(const std::filesystem::path& folder);
  bool is_byte_level() const { return std::holds_alternative<ByteLevel>(spec_.pre_tokenizer); }
  void encode_segment(NormalizedText segment, Encoding& out) const;
  void encode_words(const NormalizedText& segment, std::span<const TextPiece> words, Encoding& out) const;
  void tokenize(std::string_view word, std::vector<WordToken>& out) const;

  std::string where_;  // for messages
  std::string file_name_;
  TokenizerJson spec_;
  BpeModel model_;
  mutable WordCache words_;
  std::vector<Piece> pieces_;       // by id
  AddedTokenFinder in_text_;        // added tokens that are looked for in the text as it is
  AddedTokenFinder in_normalized_;  // and those that are looked for once it is normalised
  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
};

BpeTokenizer::BpeTokenizer(TokenizerJson spec, const std::filesystem::path& file)
    : where_(cat("tokenizer: ", file.string())),
      file_name_(file.filename().string()),
      spec_(std::move(spec)),
      model_(std::move(spec_.model), where_) {
  index_pieces();
  for (const AddedToken& token : spec_.added_tokens) add_token(token);
  for (const std::vector<TokenId>* ids : {&spec_.prefix, &spec_.suffix}) {
    for (const TokenId id : *ids) piece(id);  // throws for an id that the vocabulary lacks
  }
  load_special_names(file.parent_path());
}

void BpeTokenizer::index_pieces() {
  TokenId largest = -1;
  for (const auto& [text, id] : model_.vocabulary()) largest = std::max(largest, id);
  for (const AddedToken& token : spec_.added_tokens) largest = std::max(largest, token.id);
  // Ids index a table here and the embedding matrix later; a gap this wide is a damaged file.
  const auto known = static_cast<TokenId>(model_.vocabulary().size() + spec_.added_tokens.size());
  if (largest > 2 * known + 65536) {
    throw TokenizerError(cat(where_, ": the largest id is ", largest, ", but there are only ", known, " tokens"));
  }
  pieces_.resize(static_cast<size_t>(largest + 1));
  for (const auto& [text, id] : model_.vocabulary()) pieces_[static_cast<size_t>(id)] = {text, text, false, true};
}

void BpeTokenizer::add_token(const AddedToken& token) {
  Piece& piece = pieces_[static_cast<size_t>(token.id)];
  const auto in_model = model_.id_of(token.content);
  if ((in_model && *in_model != token.id) || (piece.present && piece.text != token.content)) {
    throw TokenizerError(cat(where_, ": added_tokens: \"", token.content, "\" has id ", token.id,
                             ", but model.vocab or another added token disagrees; save the tokenizer again"));
  }
  NormalizedText normalized(token.content, 0, token.content.size());
  if (token.normalized) {
    for (const NormalizerStep& step : spec_.normalizer) normalized.apply(step);
  }
  // Like Hugging Face 0.23: the normalised form (a leading "▁" with Prepend) is what was matched, so it is what is
  // decoded.
  piece = {token.content, normalized.text(), token.special, true};
  if (normalized.text().empty()) return;
  (token.normalized ? in_normalized_ : in_text_).add(normalized.text(), token);
}

void BpeTokenizer::load_special_names(const std::filesystem::path& folder) {
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

Encoding BpeTokenizer::encode(std::string_view text, SpecialTokens special) const {
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
      add(part.token->id, {static_cast<int64_t>(part.begin), static_cast<int64_t>(part.end)});
      continue;
    }
    // Each stretch between added tokens is normalised by itself, so Prepend acts on every one.
    NormalizedText normalized(text, part.begin, part.end);
    for (const NormalizerStep& step : spec_.normalizer) normalized.apply(step);
    for (const TextPart& inner : in_normalized_.split(normalized.text())) {
      if (inner.token != nullptr) {
        add(inner.token->id, normalized.origin(inner.begin, inner.end));
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

/// Spaces become the replacement, one is put before, and words are cut before each.
std::vector<TextPiece> cut_words(const Metaspace& metaspace, NormalizedText& segment) {
  segment.replace(" ", metaspace.replacement);
  const bool prepends = metaspace.prepend == PrependScheme::kAlways ||
                        (metaspace.prepend == PrependScheme::kFirst && segment.origin_begin() == 0);
  const std::string& text = segment.text();
  if (prepends && !text.starts_with(metaspace.replacement)) segment.prepend(metaspace.replacement);
  std::vector<TextPiece> words;
  size_t begin = 0;
  for (size_t at = 1; metaspace.split && (at = text.find(metaspace.replacement, at)) != std::string::npos; ++at) {
    words.push_back({begin, at});
    begin = at;
  }
  words.push_back({begin, text.size()});
  return words;
}

std::vector<TextPiece> cut_words(const Splits& splits, const NormalizedText& segment) {
  return cut_text(segment.text(), splits.patterns);
}

std::vector<TextPiece> cut_words(const ByteLevel& byte_level, NormalizedText& segment) {
  if (byte_level.add_prefix_space && !segment.text().starts_with(' ')) segment.prepend(" ");
  return cut_words(byte_level.splits, segment);
}

/// Makes all of the text one word, where there is no pre-tokenizer.
std::vector<TextPiece> cut_words(std::monostate, const NormalizedText& segment) { return {{0, segment.text().size()}}; }

void BpeTokenizer::encode_segment(NormalizedText segment, Encoding& out) const {
  const std::vector<TextPiece> words =
      std::visit([&](const auto& kind) { return cut_words(kind, segment); }, spec_.pre_tokenizer);
  encode_words(segment, words, out);
}

void BpeTokenizer::encode_words(const NormalizedText& segment, std::span<const TextPiece> words, Encoding& out) const {
  std::vector<WordToken> tokens;
  for (const TextPiece& word : words) {
    tokens.clear();
    tokenize(std::string_view(segment.text()).substr(word.begin, word.end - word.begin), tokens);
    for (const WordToken& token : tokens) {
      out.ids.push_back(token.id);
      out.spans.push_back(segment.origin(word.begin + token.begin, word.begin + token.end));
    }
  }
}

/// Places in the word's spelling become places in the word, of which each byte is one character of the spelling.
void to_byte_places(std::string_view spelling, std::vector<WordToken>& tokens) {
  std::vector<size_t> byte_at(spelling.size() + 1);
  size_t byte = 0;
  for (size_t at = 0; at < spelling.size(); at += utf8_bytes(spelling[at])) byte_at[at] = byte++;
  byte_at.back() = byte;
  for (WordToken& token : tokens) token = {token.id, byte_at[token.begin], byte_at[token.end]};
}

void BpeTokenizer::tokenize(std::string_view word, std::vector<WordToken>& out) const {
  if (words_.find(word, out)) return;
  if (is_byte_level()) {
    const std::string spelling = spell_bytes(word);
    model_.tokenize(spelling, out);
    to_byte_places(spelling, out);
  } else {
    model_.tokenize(word, out);
  }
  words_.keep(word, out);
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids) const {
  std::vector<std::string> pieces;
  for (const TokenId id : ids) {
    // A model's vocabulary may be padded beyond the tokenizer's; such ids have no text, as in Hugging Face.
    if (id < 0 || id >= vocab_size()) continue;
    const Piece& piece = pieces_[static_cast<size_t>(id)];
    if (piece.present && !piece.special) pieces.push_back(piece.decoded);
  }
  return spec_.decoder ? decode_pieces(*spec_.decoder, std::move(pieces)) : join(pieces, " ");
}

std::string BpeTokenizer::piece(TokenId id) const {
  if (id < 0 || id >= vocab_size() || !pieces_[static_cast<size_t>(id)].present) {
    throw TokenizerError(cat(where_, ": no token has the id ", id, " (vocabulary of ", vocab_size(), ")"));
  }
  return pieces_[static_cast<size_t>(id)].text;
}

}  // namespace

std::unique_ptr<Tokenizer> open_bpe_tokenizer(const std::filesystem::path& tokenizer_json) {
  return std::make_unique<BpeTokenizer>(load_tokenizer_json(tokenizer_json), tokenizer_json);
}

std::unique_ptr<Tokenizer> open_vocab_and_merges(const std::filesystem::path& folder) {
  return std::make_unique<BpeTokenizer>(load_vocab_and_merges(folder), folder / "vocab.json");
}

}  // namespace lancet
