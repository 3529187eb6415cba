#include "decoder.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "byte_alphabet.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"
#include "normalized_text.h"

namespace lancet {
namespace {

using Pieces = std::vector<std::string>;

std::string with_replaced(std::string_view text, std::span<const TextPiece> places, std::string_view content) {
  std::string out;
  size_t from = 0;
  for (const TextPiece& place : places) {
    out.append(text, from, place.begin - from).append(content);
    from = place.end;
  }
  return out.append(text, from);
}

std::string with_replaced(std::string_view text, std::string_view pattern, std::string_view content) {
  return with_replaced(text, TextPattern::literal(pattern).matches(text), content);
}

size_t bytes_of(const Pieces& pieces) {
  size_t bytes = 0;
  for (const std::string& piece : pieces) bytes += piece.size();
  return bytes;
}

[[noreturn]] void fail_growth(size_t most) {
  throw TokenizerError(cat("tokenizer: the decoder makes a text longer than ", most,
                           " bytes of the tokens' own; such a tokenizer.json is damaged or made to take all memory: "
                           "download the model's own"));
}

Pieces decode_step(const ReplaceStep& step, Pieces pieces, size_t most) {
  size_t bytes = bytes_of(pieces);
  for (std::string& piece : pieces) {
    if (piece.empty()) continue;
    const std::vector<TextPiece> places = step.pattern.matches(piece);
    for (const TextPiece& place : places) bytes = bytes - (place.end - place.begin) + step.content.size();
    if (bytes > most) fail_growth(most);
    if (!places.empty()) piece = with_replaced(piece, places, step.content);
  }
  return pieces;
}

/// Returns the byte of "<0xE2>".
std::optional<char> byte_of(const std::string& piece) {
  if (piece.size() != 6 || piece.compare(0, 3, "<0x") != 0 || piece[5] != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  if (error != std::errc() || end != piece.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

/// A run of byte pieces is text if the whole run is valid UTF-8; else each byte becomes U+FFFD.
void flush_bytes(std::string& bytes, Pieces& out) {
  if (bytes.empty()) return;
  if (first_invalid_utf8(bytes)) {
    for (size_t i = 0; i < bytes.size(); ++i) out.emplace_back(kReplacementCharacter);
  } else {
    out.push_back(bytes);
  }
  bytes.clear();
}

Pieces decode_step(const ByteFallbackStep&, Pieces pieces, size_t /*most*/) {
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

Pieces decode_step(const FuseStep&, const Pieces& pieces, size_t /*most*/) { return {join(pieces, "")}; }

Pieces decode_step(const StripStep& step, Pieces pieces, size_t /*most*/) {
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

/// The first piece loses its replacement characters completely if one may have been put before the text.
Pieces decode_step(const MetaspaceStep& step, Pieces pieces, size_t /*most*/) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool dropped = i == 0 && step.prepend != PrependScheme::kNever;
    pieces[i] = with_replaced(pieces[i], step.replacement, dropped ? "" : " ");
  }
  return pieces;
}

/// A piece with a character that is no byte's (an added token) is its own text.
Pieces decode_step(const ReadBytesStep&, const Pieces& pieces, size_t /*most*/) {
  std::string bytes;
  for (const std::string& piece : pieces) bytes += read_spelling(piece).value_or(piece);
  return {replace_broken_utf8(bytes)};
}

Pieces decode_step(const WordEndStep& step, Pieces pieces, size_t /*most*/) {
  for (size_t i = 0; i < pieces.size(); ++i)
    pieces[i] = with_replaced(pieces[i], step.suffix, i + 1 < pieces.size() ? " " : "");
  return pieces;
}

std::string cleaned_up(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRules{{{" .", "."},
                                                                                  {" ?", "?"},
                                                                                  {" !", "!"},
                                                                                  {" ,", ","},
                                                                                  {" ' ", "'"},
                                                                                  {" n't", "n't"},
                                                                                  {" 'm", "'m"},
                                                                                  {" do not", " don't"},
                                                                                  {" 's", "'s"},
                                                                                  {" 've", "'ve"},
                                                                                  {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) text = with_replaced(text, from, to);
  return text;
}

Pieces decode_step(const WordPieceStep& step, Pieces pieces, size_t /*most*/) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) pieces[i] = pieces[i].starts_with(step.prefix) ? pieces[i].substr(step.prefix.size()) : " " + pieces[i];
    if (step.cleanup) pieces[i] = cleaned_up(std::move(pieces[i]));
  }
  return pieces;
}

}  // namespace

std::string decode_pieces(std::span<const DecoderStep> steps, std::vector<std::string> pieces) {
  const size_t most = kMostGrowth * bytes_of(pieces) + kAlwaysRoom;
  for (const DecoderStep& step : steps)
    pieces = std::visit([&](const auto& kind) { return decode_step(kind, std::move(pieces), most); }, step);
  return join(pieces, "");
}

}  // namespace lancet
