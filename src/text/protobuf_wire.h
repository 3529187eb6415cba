// Reads as much of the protocol buffer wire format as is needed for a SentencePiece model's settings and its
// alignments. The system package does not have the generated classes, and ImmutableSentencePieceText is newer than
// Ubuntu 22.04's version 0.1.96.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lancet {

struct ProtoField {
  uint64_t number = 0;
  uint64_t value = 0;      ///< varint and fixed-width fields
  std::string_view bytes;  ///< strings and messages
};

/// The fields of one message, in order. A damaged message ends early.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  std::optional<ProtoField> next() {
    const auto tag = varint();
    if (!tag) return std::nullopt;
    ProtoField field{*tag >> 3, 0, {}};
    switch (*tag & 7) {
      case 0: {
        const auto value = varint();
        if (!value) return std::nullopt;
        field.value = *value;
        return field;
      }
      case 1:
        return fixed(field, 8);
      case 2: {
        const auto size = varint();
        if (!size || *size > rest_.size()) return std::nullopt;
        field.bytes = take(static_cast<size_t>(*size));
        return field;
      }
      case 5:
        return fixed(field, 4);
      default:
        return std::nullopt;
    }
  }

 private:
  std::string_view take(size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::optional<ProtoField> fixed(ProtoField field, size_t size) {
    if (size > rest_.size()) return std::nullopt;
    const std::string_view bytes = take(size);
    for (size_t i = size; i-- > 0;) field.value = field.value << 8 | static_cast<uint8_t>(bytes[i]);
    return field;
  }

  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

}  // namespace lancet
