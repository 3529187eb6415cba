// What is no text: files of other kinds, whatever their names end in, and bytes that no text has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lancet {

/// What a file that is no text of UTF-8 most likely is, and what to do: "is compressed by gzip: unpack it first
/// (gunzip)". nullopt: it may be text. The first bytes say it.
std::optional<std::string> foreign_file(std::string_view text);

/// A byte that is no UTF-8, or 0.
struct BadByte {
  int64_t line = 1;
  unsigned value = 0;

  /// "the byte 233 is no UTF-8: save the file as UTF-8".
  std::string text() const;
};

/// The first one.
std::optional<BadByte> find_bad_byte(std::string_view text);

}  // namespace lancet
