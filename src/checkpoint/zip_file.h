// The zip container that .npz and .pt files are. Opening validates all of its structure before anything is used; bytes
// are read on demand, past the file's mapping. Source of the format: PKWARE APPNOTE 6.3.10.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/io/files.h"

namespace lancet {

/// What the file is for, in messages.
struct ZipKind {
  std::string_view damaged;  ///< "the file is damaged, or no .npz file: download it again"
  std::string_view rewrite;  ///< "write it again with numpy.savez"
};

/// Place of a problem, and the one way to say it.
struct ZipPlace {
  const std::filesystem::path& file;
  const ZipKind& kind;
  std::string member = {};  ///< "array 'a'"; empty: the file as a whole

  /// Throws: CheckpointError. Without a remedy: kind.damaged.
  [[noreturn]] void fail(std::string_view expected, std::string_view got, std::string_view remedy = {}) const;
};

struct ZipMember {
  std::string name;
  uint64_t begin = 0;         ///< offset of the stored bytes in the file
  uint64_t stored_bytes = 0;  ///< size_bytes unless deflated
  uint64_t size_bytes = 0;    ///< unpacked
  uint32_t crc32 = 0;
  bool deflated = false;
};

/// Reads the members in the order of the directory, which is that of their bytes. Throws: CheckpointError when the file
/// is not a valid zip file: directory, local headers (encryption, unknown methods, names twice, members that overlap or
/// lie outside).
std::vector<ZipMember> read_zip_members(const MappedFile& file, const ZipKind& kind);

/// Throws: CheckpointError when the bytes of a member that is not deflated disagree with its CRC-32. By several
/// threads.
void check_stored_bytes(const MappedFile& file, const ZipMember& member, const ZipPlace& place);

/// A member's unpacked bytes from its first one on, and their checksum.
class ZipMemberStream {
 public:
  /// All outlive the stream.
  ZipMemberStream(const MappedFile& file, const ZipMember& member, const ZipPlace& place);
  ~ZipMemberStream();
  ZipMemberStream(const ZipMemberStream&) = delete;
  ZipMemberStream& operator=(const ZipMemberStream&) = delete;

  /// Throws: CheckpointError when there are fewer, or damaged ones.
  void read(std::span<std::byte> to);
  /// Call when all bytes have been read. Throws: CheckpointError when there are more, or others than the CRC-32's.
  void finish();

 private:
  /// How many bytes there were.
  size_t copy(std::span<std::byte> to);
  size_t unpack(std::span<std::byte> to);
  void refill();

  const MappedFile& file_;
  const ZipMember& member_;
  const ZipPlace& place_;
  uint64_t taken_ = 0;  // of the stored bytes
  std::vector<std::byte> input_;
  z_stream stream_{};
  bool ended_ = false;
  uLong crc_ = 0;
};

}  // namespace lancet
