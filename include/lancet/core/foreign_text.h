// Recognises files that are not text, whatever their extension, and bytes that are not UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lancet {

/// Says what kind of file `text` most likely is if it is not UTF-8 text, and what to do: "is compressed by gzip: unpack
/// it first (gunzip)". Returns nullopt if it may be text. Decides by the first bytes.
std::optional<std::string> foreign_file(std::string_view text);

/// A byte that is not valid UTF-8, or a zero byte.
struct BadByte {
  int64_t line = 1;
  unsigned value = 0;

  /// Returns "the byte 233 is no UTF-8: save the file as UTF-8".
  std::string text() const;
};

/// Returns the first such byte.
std::optional<BadByte> find_bad_byte(std::string_view text);

}  // namespace lancet
