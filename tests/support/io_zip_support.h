// Zip files made by hand: nothing here uses the code under test.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lancet::testing {

inline std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>((value >> (8 * i)) & 0xff);
  return text;
}

/// `window_bits`: as zlib's deflateInit2 has them, which tell the format too.
inline std::string deflated(std::string_view text, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string raw_deflate(std::string_view text) { return deflated(text, -MAX_WBITS); }

enum class Zip64 { kNo, kLocal, kEverywhere };

/// A member to write; what a test makes wrong is set here.
struct Member {
  std::string name;
  std::string bytes;
  uint16_t method = 0;
  uint16_t flags = 0;
  std::optional<uint32_t> crc = {};
  std::optional<std::string> stored = {};
  std::optional<uint64_t> size = {};
  std::string local_name = name;
};

inline std::string zip(const std::vector<Member>& members, Zip64 wide = Zip64::kNo) {
  std::string file, directory;
  for (const Member& member : members) {
    const std::string stored = member.stored        ? *member.stored
                               : member.method == 8 ? raw_deflate(member.bytes)
                                                    : member.bytes;
    const uint64_t size = member.size.value_or(member.bytes.size());
    const auto crc = member.crc.value_or(static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(member.bytes.data()), static_cast<uInt>(member.bytes.size()))));
    const std::string head = little(member.flags, 2) + little(member.method, 2) + little(0, 4) + little(crc, 4);
    const std::string sizes = little(stored.size(), 4) + little(size, 4);
    const std::string overflown = little(0xffffffff, 4) + little(0xffffffff, 4);
    const std::string values = little(size, 8) + little(stored.size(), 8);
    const uint64_t offset = file.size();
    const std::string local_extra = wide == Zip64::kNo ? "" : little(1, 2) + little(16, 2) + values;
    const std::string extra =
        wide != Zip64::kEverywhere ? "" : little(1, 2) + little(24, 2) + values + little(offset, 8);
    file += "PK\3\4" + little(45, 2) + head + (local_extra.empty() ? sizes : overflown);
    file +=
        little(member.local_name.size(), 2) + little(local_extra.size(), 2) + member.local_name + local_extra + stored;
    directory += "PK\1\2" + little(45, 2) + little(45, 2) + head + (extra.empty() ? sizes : overflown);
    directory += little(member.name.size(), 2) + little(extra.size(), 2) + little(0, 2) + little(0, 2) + little(0, 6);
    directory += little(extra.empty() ? offset : 0xffffffff, 4) + member.name + extra;
  }
  const uint64_t offset = file.size(), count = members.size();
  file += directory;
  if (wide == Zip64::kEverywhere) {
    const uint64_t end = file.size();
    file +=
        "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) + little(count, 8) + little(count, 8);
    file += little(directory.size(), 8) + little(offset, 8) + "PK\6\7" + little(0, 4) + little(end, 8) + little(1, 4);
    return file + "PK\5\6" + little(0, 4) + little(0xffff, 2) + little(count, 2) + little(0xffffffff, 4) +
           little(0xffffffff, 4) + little(0, 2);
  }
  return file + "PK\5\6" + little(0, 4) + little(count, 2) + little(count, 2) + little(directory.size(), 4) +
         little(offset, 4) + little(0, 2);
}

}  // namespace lancet::testing
