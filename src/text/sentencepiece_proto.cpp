#include "sentencepiece_proto.h"

#include "protobuf_wire.h"

namespace lancet {

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

/// If a message occurs twice, its later fields replace the earlier ones, and the other fields stay. Appends
/// normalizer_spec (3) with add_dummy_prefix (3): 0.
std::string without_dummy_prefix(std::string model) { return model.append("\x1A\x02\x18\x00", 4); }

bool is_rank_list(std::string_view content) {
  const std::string_view line = content.substr(0, content.find('\n'));
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size()) return false;
  return line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == space &&
         line.find_first_not_of("0123456789\r", space + 1) == std::string_view::npos;
}

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

void share_characters(std::vector<AlignedPiece>& pieces, bool has_dummy_prefix) {
  for (size_t i = pieces.size(); i-- > 1;) {
    AlignedPiece& piece = pieces[i - 1];
    const bool dummy = has_dummy_prefix && i == 1 && piece.text == kSpaceSymbol;
    if (piece.span.begin == piece.span.end && !dummy && pieces[i].span.begin == piece.span.begin)
      piece.span = pieces[i].span;
  }
}

}  // namespace lancet
