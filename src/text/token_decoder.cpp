#include "token_decoder.h"

#include <charconv>
#include <optional>

#include "byte_alphabet.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/utf8.h"
#include "normalized_text.h"

namespace lancet {
namespace {

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

}  // namespace

std::string decode_pieces(const std::vector<DecoderStep>& steps, std::vector<std::string> pieces) {
  const size_t most = kMostGrowth * bytes_of(pieces) + kAlwaysRoom;
  for (const DecoderStep& step : steps) {
    if (const auto* replaced = std::get_if<ReplaceStep>(&step)) require_decoded_room(*replaced, pieces, most);
    pieces = std::visit([&](const auto& kind) { return decode_step(kind, std::move(pieces)); }, step);
  }
  return join(pieces, "");
}

}  // namespace lancet
