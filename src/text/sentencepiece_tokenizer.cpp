// tokenizer.model through libsentencepiece, with its own alignment of pieces to the text. Text that spells a control
// piece ("<s>") is text, as in sentencepiece and unlike in Hugging Face.
#include <sentencepiece_processor.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/text/tokenizer.h"
#include "model_file.h"
#include "protobuf_wire.h"
#include "utf8.h"

namespace lancet {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // "▁"

/// What the model file says that libsentencepiece gives no access to. Defaults of sentencepiece_model.proto.
struct ModelSettings {
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
  bool has_denormalizer = false;
  uint64_t model_type = 1;
};

ModelSettings parse_settings(std::string_view model) {
  ModelSettings settings;
  ProtoReader reader(model);
  while (const auto part = reader.next()) {
    ProtoReader fields(part->bytes);
    while (part->number == 2 || part->number == 3 ||
           part->number == 5) {  // trainer_spec, normalizer_spec, denormalizer_spec
      const auto field = fields.next();
      if (!field) break;
      if (part->number == 2 && field->number == 3) settings.model_type = field->value;
      if (part->number == 2 && field->number == 24) settings.treat_whitespace_as_suffix = field->value != 0;
      if (part->number == 3 && field->number == 3) settings.add_dummy_prefix = field->value != 0;
      if (part->number == 3 && field->number == 4) settings.remove_extra_whitespaces = field->value != 0;
      if (part->number == 3 && field->number == 5) settings.escape_whitespaces = field->value != 0;
      if (part->number == 5 && field->number == 2) settings.has_denormalizer = !field->bytes.empty();
    }
  }
  return settings;
}

struct AlignedPiece {
  TokenId id = 0;
  std::string_view text;
  ByteSpan span;
};

/// Reads a serialised SentencePieceText. Nothing when it is not that of `text`: encoding failed, and this API says no
/// more.
std::optional<std::vector<AlignedPiece>> parse_alignment(std::string_view message, std::string_view text) {
  std::vector<AlignedPiece> pieces;
  bool complete = text.empty();  // the library writes the text last
  ProtoReader reader(message);
  while (const auto part = reader.next()) {
    if (part->number == 1) complete = part->bytes == text;
    if (part->number != 2) continue;
    AlignedPiece piece;
    ProtoReader fields(part->bytes);
    while (const auto field = fields.next()) {
      if (field->number == 1) piece.text = field->bytes;
      if (field->number == 2) piece.id = static_cast<TokenId>(field->value);
      if (field->number == 4) piece.span.begin = static_cast<int64_t>(field->value);
      if (field->number == 5) piece.span.end = static_cast<int64_t>(field->value);
    }
    pieces.push_back(piece);
  }
  if (!complete) return std::nullopt;
  return pieces;
}

/// The library aligns a character that several pieces share (byte fallback, a ligature that normalisation takes apart)
/// with the last of them only. All of them get it here. A dummy prefix of its own keeps its empty span.
void share_characters(std::vector<AlignedPiece>& pieces, bool has_dummy_prefix) {
  for (size_t i = pieces.size(); i-- > 1;) {
    AlignedPiece& piece = pieces[i - 1];
    const bool dummy = has_dummy_prefix && i == 1 && piece.text == kSpaceSymbol;
    if (piece.span.begin == piece.span.end && !dummy && pieces[i].span.begin == piece.span.begin)
      piece.span = pieces[i].span;
  }
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::filesystem::path& file, SentencePieceOptions options);

  Encoding encode(std::string_view text, SpecialTokens special) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  int64_t vocab_size() const override { return processor_.GetPieceSize(); }
  std::string piece(TokenId id) const override;
  std::optional<TokenId> bos_id() const override { return optional_id(processor_.bos_id()); }
  std::optional<TokenId> eos_id() const override { return optional_id(processor_.eos_id()); }
  std::string description() const override;

 private:
  static std::optional<TokenId> optional_id(int id) { return id < 0 ? std::nullopt : std::optional<TokenId>(id); }
  void load(const std::filesystem::path& file);
  void require_supported() const;

  std::string where_;  // for messages
  std::string file_name_;
  SentencePieceOptions options_;
  ModelSettings settings_;
  sentencepiece::SentencePieceProcessor processor_;
};

SentencePieceTokenizer::SentencePieceTokenizer(const std::filesystem::path& file, SentencePieceOptions options)
    : where_(cat("tokenizer: ", file.string())), file_name_(file.filename().string()), options_(options) {
  load(file);
  require_supported();
}

/// "IQ== 0": the first line of a list of byte-level BPE ranks (tiktoken), which Llama 3 also calls tokenizer.model.
bool is_rank_list(std::string_view content) {
  const std::string_view line = content.substr(0, content.find('\n'));
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size()) return false;
  return line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == space &&
         line.find_first_not_of("0123456789\r", space + 1) == std::string_view::npos;
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

Encoding SentencePieceTokenizer::encode(std::string_view text, SpecialTokens special) const {
  require_utf8(text);
  // A std::string, because the string_view of 0.1.96 is the library's own.
  const std::string serialized = processor_.EncodeAsSerializedProto(std::string(text));
  auto pieces = parse_alignment(serialized, text);
  if (!pieces) {
    throw TokenizerError(cat(where_, ": sentencepiece failed to encode \"", text.substr(0, 80), "\""));
  }
  share_characters(*pieces, settings_.add_dummy_prefix);
  Encoding out;
  const auto add = [&](TokenId id, ByteSpan span) {
    out.ids.push_back(id);
    out.spans.push_back(span);
  };
  const auto size = static_cast<int64_t>(text.size());
  if (special == SpecialTokens::kAdd && options_.add_bos) add(*bos_id(), {0, 0});
  for (const AlignedPiece& piece : *pieces) add(piece.id, piece.span);
  if (special == SpecialTokens::kAdd && options_.add_eos) add(*eos_id(), {size, size});
  return out;
}

/// Own code, because 0.1.96 and 0.1.97 differ in how many leading spaces they strip. This is 0.1.97 and later: the
/// first piece that has text loses its leading space, and so do all before text begins when the model removes extra
/// white space.
std::string SentencePieceTokenizer::decode(std::span<const TokenId> ids) const {
  std::string out;
  std::string bytes;
  bool at_start = settings_.add_dummy_prefix || settings_.remove_extra_whitespaces;
  const auto flush = [&] {
    out += replace_invalid_utf8(bytes);
    bytes.clear();
  };
  for (const TokenId id : ids) {
    if (id < 0 || id >= vocab_size()) continue;  // a model's vocabulary may be padded beyond the tokenizer's
    const int index = static_cast<int>(id);
    if (processor_.IsControl(index) || processor_.IsUnknown(index)) continue;
    const std::string& text = processor_.IdToPiece(index);
    if (processor_.IsByte(index)) {
      bytes += static_cast<char>(std::stoi(text.substr(3, 2), nullptr, 16));
      continue;
    }
    flush();
    at_start = at_start && out.empty();
    size_t from = 0;
    if (at_start && text.compare(0, kSpaceSymbol.size(), kSpaceSymbol) == 0) {
      from = kSpaceSymbol.size();
      at_start = settings_.remove_extra_whitespaces;
    }
    for (size_t at = text.find(kSpaceSymbol, from); at != std::string::npos; at = text.find(kSpaceSymbol, from)) {
      out.append(text, from, at - from) += ' ';
      from = at + kSpaceSymbol.size();
    }
    out.append(text, from);
  }
  flush();
  return out;
}

std::string SentencePieceTokenizer::piece(TokenId id) const {
  if (id < 0 || id >= vocab_size()) {
    throw TokenizerError(cat(where_, ": no piece has the id ", id, " (vocabulary of ", vocab_size(), ")"));
  }
  return processor_.IdToPiece(static_cast<int>(id));
}

std::string SentencePieceTokenizer::description() const {
  const std::string_view kinds[] = {"", "Unigram", "BPE", "words", "characters"};
  return cat("SentencePiece ", settings_.model_type < 5 ? kinds[settings_.model_type] : "", ", ", file_name_);
}

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::filesystem::path& tokenizer_model,
                                                        SentencePieceOptions options) {
  return std::make_unique<SentencePieceTokenizer>(tokenizer_model, options);
}

}  // namespace lancet
