// Everything is checked before anything is used. Stricter than other readers: no archive comment, members in the
// directory's order, and the directory must agree with the members' own headers.
#include "zip_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <thread>
#include <unordered_set>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/parallel.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian and bytes are used in place");

constexpr uint32_t kLocalSignature = 0x04034b50, kDirectorySignature = 0x02014b50, kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr uint64_t kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint32_t kIn64 = 0xffffffff;  // the true value stands in the zip64 part
constexpr uint16_t kStored = 0, kDeflated = 8;
/// Compression level, sizes after the data, UTF-8 names. Encryption and what else there is change the bytes.
constexpr unsigned kSizesAfter = 0x0008, kHarmlessFlags = 0x0002 | 0x0004 | kSizesAfter | 0x0800;
/// deflate cannot do better, so a larger promise is false: refused before memory is asked for.
constexpr uint64_t kHighestRatio = 1032;
constexpr uint64_t kLocalBytes = 30;  // before the name
/// A file of one matrix has a handful of members; a directory of millions would only take memory.
constexpr uint64_t kLargestDirectory = 4'000'000;
/// What is worth a thread.
constexpr uint64_t kCrcPieceBytes = uint64_t{4} << 20;
constexpr size_t kInputBytes = size_t{256} << 10;

using Bytes = std::vector<std::byte>;

Bytes read_bytes(const MappedFile& file, uint64_t offset, uint64_t count) {
  Bytes bytes(count);
  file.read(offset, bytes);
  return bytes;
}

/// Little-endian fields one after the other; a field beyond the end is an error.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, const ZipPlace& place) : bytes_(bytes), place_(place) {}

  template <typename T>
  T take() {
    T value{};
    std::memcpy(&value, take_bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take_bytes(uint64_t count) {
    if (count > bytes_.size())
      place_.fail(cat(count, " more bytes of a zip header"), cat("a header that ends after ", bytes_.size()));
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  uint64_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  const ZipPlace& place_;
};

/// What the directory and the local header both say of a member; `offset` only the directory.
struct ZipEntry {
  uint16_t flags = 0, method = 0;
  uint32_t crc32 = 0;
  uint64_t stored_bytes = 0, size_bytes = 0, offset = 0;
  std::string name;
};

/// Replaces the values that stand as 0xffffffff by those of the zip64 extra field, in the format's order.
void apply_zip64(ZipEntry& entry, std::span<const std::byte> extra, const ZipPlace& place) {
  Fields fields(extra, place);
  bool found = false;
  while (fields.left() >= 4) {
    const auto id = fields.take<uint16_t>();
    Fields values(fields.take_bytes(fields.take<uint16_t>()), place);
    if (id != 1 || std::exchange(found, true)) continue;
    for (uint64_t* value : {&entry.size_bytes, &entry.stored_bytes, &entry.offset})
      if (*value == kIn64) *value = values.take<uint64_t>();
  }
  if (!found && (entry.size_bytes == kIn64 || entry.stored_bytes == kIn64 || entry.offset == kIn64))
    place.fail("a zip64 field, because a size is 0xffffffff", "none");
}

/// `signature`: of the directory's entries or of the local headers, which differ in some fields.
ZipEntry read_entry(Fields& fields, uint32_t signature, const ZipPlace& place) {
  if (fields.take<uint32_t>() != signature) place.fail("a header of a zip member", "other bytes");
  const bool in_directory = signature == kDirectorySignature;
  ZipEntry entry;
  fields.take_bytes(in_directory ? 4 : 2);  // versions
  entry.flags = fields.take<uint16_t>();
  entry.method = fields.take<uint16_t>();
  fields.take_bytes(4);  // time and date
  entry.crc32 = fields.take<uint32_t>();
  entry.stored_bytes = fields.take<uint32_t>();
  entry.size_bytes = fields.take<uint32_t>();
  const auto name_bytes = fields.take<uint16_t>(), extra_bytes = fields.take<uint16_t>();
  uint16_t comment_bytes = 0;
  if (in_directory) {
    comment_bytes = fields.take<uint16_t>();
    if (fields.take<uint16_t>() != 0) place.fail("a zip file of one part", "a member in another", place.kind.rewrite);
    fields.take_bytes(6);  // attributes
    entry.offset = fields.take<uint32_t>();
  }
  entry.name.assign(reinterpret_cast<const char*>(fields.take_bytes(name_bytes).data()), name_bytes);
  apply_zip64(entry, fields.take_bytes(extra_bytes), place);
  fields.take_bytes(comment_bytes);
  return entry;
}

struct Directory {
  Bytes entries;
  uint64_t count = 0, offset = 0;
};

Directory find_directory(const MappedFile& file, const ZipPlace& place) {
  const uint64_t size_bytes = file.bytes().size();
  if (size_bytes < kEndBytes) place.fail("a zip file of at least 22 bytes", cat(size_bytes, " bytes"));
  uint64_t end_at = size_bytes - kEndBytes;
  const Bytes end_record = read_bytes(file, end_at, kEndBytes);
  Fields end(end_record, place);
  if (end.take<uint32_t>() != kEndSignature) place.fail("the end record of a zip file in the last 22 bytes", "none");
  const uint32_t parts = end.take<uint32_t>();
  uint64_t here = end.take<uint16_t>(), count = end.take<uint16_t>();
  uint64_t size = end.take<uint32_t>(), offset = end.take<uint32_t>();
  if (end.take<uint16_t>() != 0)
    place.fail("a zip file without a comment", "one that announces a comment", place.kind.rewrite);

  const uint64_t locator_bytes = std::min(end_at, kLocator64Bytes);
  const Bytes locator_record = read_bytes(file, end_at - locator_bytes, locator_bytes);
  Fields locator(locator_record, place);
  // Recognised by its signature: Python writes it from 2 GiB on, where no value of the end record has to overflow.
  if (end_at >= kEnd64Bytes + kLocator64Bytes && locator.take<uint32_t>() == kLocator64Signature) {
    end_at -= kEnd64Bytes + kLocator64Bytes;
    const Bytes wide_record = read_bytes(file, end_at, kEnd64Bytes);
    Fields wide(wide_record, place);
    bool agree = locator.take<uint32_t>() == 0 && locator.take<uint64_t>() == end_at && locator.take<uint32_t>() == 1 &&
                 wide.take<uint32_t>() == kEnd64Signature && wide.take<uint64_t>() == kEnd64Bytes - 12;
    wide.take_bytes(4);  // versions
    agree = wide.take<uint64_t>() == 0 && agree;
    const auto widen = [&](uint64_t& value, uint64_t overflown) {
      const uint64_t narrow = std::exchange(value, wide.take<uint64_t>());
      agree = agree && (narrow == value || narrow == overflown);
    };
    widen(here, 0xffff);
    widen(count, 0xffff);
    widen(size, kIn64);
    widen(offset, kIn64);
    if (!agree) place.fail("a zip64 end record that agrees with the end record", "another");
  }
  if (parts != 0 || here != count) place.fail("a zip file of one part", "one of several", place.kind.rewrite);
  if (offset > end_at || size != end_at - offset)
    place.fail(cat("a zip directory that ends at byte ", end_at), cat(size, " bytes from byte ", offset));
  if (size > kLargestDirectory)
    place.fail(cat("a zip directory of at most ", kLargestDirectory, " bytes"), cat(size, " bytes"),
               place.kind.rewrite);
  return {read_bytes(file, offset, size), count, offset};
}

/// The header before the member's bytes; how long it is goes to `header_bytes`. `end`: of all members.
ZipEntry read_local(const MappedFile& file, uint64_t offset, uint64_t end, const ZipPlace& place,
                    uint64_t& header_bytes) {
  if (offset > end) place.fail(cat("a member before byte ", end), cat("byte ", offset));
  Bytes bytes = read_bytes(file, offset, std::min(kLocalBytes, end - offset));
  if (bytes.size() == kLocalBytes) {
    uint16_t name_bytes = 0, extra_bytes = 0;
    std::memcpy(&name_bytes, bytes.data() + kLocalBytes - 4, 2);
    std::memcpy(&extra_bytes, bytes.data() + kLocalBytes - 2, 2);
    bytes = read_bytes(file, offset, std::min(kLocalBytes + name_bytes + extra_bytes, end - offset));
  }
  header_bytes = bytes.size();
  Fields fields(bytes, place);
  return read_entry(fields, kLocalSignature, place);
}

/// `end`: of all members. The local header must agree with the entry.
ZipMember find_member(const MappedFile& file, const ZipEntry& entry, uint64_t end, const ZipPlace& place) {
  if ((entry.flags & ~kHarmlessFlags) != 0)
    place.fail("a zip member that is not encrypted", cat("flags ", entry.flags), place.kind.rewrite);
  if (entry.method != kStored && entry.method != kDeflated)
    place.fail("a member that is stored or deflated", cat("compression method ", entry.method), place.kind.rewrite);
  uint64_t header_bytes = 0;
  const ZipEntry local = read_local(file, entry.offset, end, place, header_bytes);
  const bool sizes_agree =
      local.crc32 == entry.crc32 && local.stored_bytes == entry.stored_bytes && local.size_bytes == entry.size_bytes;
  if (local.name != entry.name || local.flags != entry.flags || local.method != entry.method ||
      (!sizes_agree && (entry.flags & kSizesAfter) == 0))
    place.fail("a member whose header agrees with the zip directory", "another header");
  const uint64_t begin = entry.offset + header_bytes, rest = end - begin;
  if (entry.stored_bytes > rest)
    place.fail(cat(entry.stored_bytes, " bytes of data"), cat(rest, " bytes before the zip directory"));
  if (entry.method == kStored ? entry.size_bytes != entry.stored_bytes
                              : entry.size_bytes / kHighestRatio > entry.stored_bytes)
    place.fail("a size that the data can have", cat(entry.size_bytes, " bytes from ", entry.stored_bytes));
  return {entry.name, begin, entry.stored_bytes, entry.size_bytes, entry.crc32, entry.method == kDeflated};
}

}  // namespace

void ZipPlace::fail(std::string_view expected, std::string_view got, std::string_view remedy) const {
  throw CheckpointError(cat(file.string(), ": ", member, member.empty() ? "" : ": ", "expected ", expected, ", got ",
                            got, "; ", remedy.empty() ? kind.damaged : remedy));
}

std::vector<ZipMember> read_zip_members(const MappedFile& file, const ZipKind& kind) {
  const ZipPlace whole{file.path(), kind};
  const Directory directory = find_directory(file, whole);
  Fields entries(directory.entries, whole);
  std::vector<ZipMember> members;
  std::unordered_set<std::string> names;
  uint64_t previous_end = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const ZipEntry entry = read_entry(entries, kDirectorySignature, whole);
    const ZipPlace place{file.path(), kind, cat("member '", printable(entry.name), "'")};
    if (!names.insert(entry.name).second) place.fail("every name once", "two members of this name", kind.rewrite);
    members.push_back(find_member(file, entry, directory.offset, place));
    if (entry.offset < previous_end) place.fail("members one after the other", "two that overlap");
    previous_end = members.back().begin + members.back().stored_bytes;
  }
  if (entries.left() != 0) whole.fail(cat("a zip directory of ", directory.count, " entries"), "further bytes");
  return members;
}

void check_stored_bytes(const MappedFile& file, const ZipMember& member, const ZipPlace& place) {
  const size_t n_pieces = (member.size_bytes + kCrcPieceBytes - 1) / kCrcPieceBytes;
  std::vector<uLong> sums(n_pieces);
  const auto size_of = [&](size_t i) { return std::min(kCrcPieceBytes, member.size_bytes - i * kCrcPieceBytes); };
  const size_t n_threads = std::max(1U, std::thread::hardware_concurrency());
  for_each_in_parallel(n_pieces, n_threads, [&](size_t i) {
    thread_local Bytes buffer(kInputBytes);
    uLong sum = 0;
    for (uint64_t done = 0; done < size_of(i); done += buffer.size()) {
      const auto bytes = std::span(buffer).first(std::min<uint64_t>(buffer.size(), size_of(i) - done));
      file.read(member.begin + i * kCrcPieceBytes + done, bytes);
      sum = crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    }
    sums[i] = sum;
  });
  uLong whole = 0;
  for (size_t i = 0; i < n_pieces; ++i) whole = crc32_combine(whole, sums[i], static_cast<z_off_t>(size_of(i)));
  if (whole != member.crc32) place.fail(cat("the CRC-32 ", member.crc32), cat(whole));
}

ZipMemberStream::ZipMemberStream(const MappedFile& file, const ZipMember& member, const ZipPlace& place)
    : file_(file), member_(member), place_(place) {
  if (member.deflated && inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
}

ZipMemberStream::~ZipMemberStream() { inflateEnd(&stream_); }  // of a stream without state: does nothing

void ZipMemberStream::read(std::span<std::byte> to) {
  if (copy(to) < to.size()) place_.fail(cat(member_.size_bytes, " bytes"), "compressed data that ends before");
  // zlib takes a null pointer, which an empty array may have, for the wish to begin anew
  if (!to.empty()) crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(to.data()), to.size());
}

void ZipMemberStream::finish() {
  std::byte more{};
  if (copy({&more, 1}) != 0) place_.fail(cat(member_.size_bytes, " bytes"), "more compressed data");
  if (ended_ != member_.deflated || taken_ != member_.stored_bytes || stream_.avail_in != 0)
    place_.fail("compressed data that fills its member", "data with another end");
  if (crc_ != member_.crc32) place_.fail(cat("the CRC-32 ", member_.crc32), cat(crc_));
}

size_t ZipMemberStream::copy(std::span<std::byte> to) {
  if (member_.deflated) return unpack(to);
  const size_t count = std::min<uint64_t>(to.size(), member_.stored_bytes - taken_);
  file_.read(member_.begin + taken_, to.first(count));
  taken_ += count;
  return count;
}

void ZipMemberStream::refill() {
  input_.resize(std::min<uint64_t>(kInputBytes, member_.stored_bytes - taken_));
  file_.read(member_.begin + taken_, input_);
  taken_ += input_.size();
  stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
  stream_.avail_in = static_cast<uInt>(input_.size());
}

size_t ZipMemberStream::unpack(std::span<std::byte> to) {
  constexpr size_t kStep = size_t{1} << 30;  // zlib counts in 32 bits
  size_t done = 0;
  while (done < to.size() && !ended_) {
    if (stream_.avail_in == 0) refill();
    const size_t room = std::min(kStep, to.size() - done);
    stream_.next_out = reinterpret_cast<Bytef*>(to.data() + done);
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    done += room - stream_.avail_out;
    ended_ = status == Z_STREAM_END;
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_BUF_ERROR) break;  // no more input
    if (status != Z_OK && !ended_)
      place_.fail("deflated data", cat("damaged data: ", stream_.msg != nullptr ? stream_.msg : "unknown cause"));
  }
  return done;
}

}  // namespace lancet
