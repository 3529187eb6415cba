// Everything is checked before anything is used. Stricter than numpy and Python's zipfile: no archive comment, only
// arrays as members, in the directory's order, and the directory must agree with the members' own headers.
#include "lancet/io/npz.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "safetensors_format.h"
#include "strict_json.h"

namespace lancet {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian and bytes are used in place");

constexpr uint32_t kLocalSignature = 0x04034b50, kDirectorySignature = 0x02014b50, kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr uint64_t kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint32_t kIn64 = 0xffffffff;  // the true value stands in the zip64 part
constexpr uint16_t kStored = 0, kDeflated = 8;
/// Compression level, sizes behind the data, UTF-8 names. Encryption and what else there is change the bytes.
constexpr unsigned kSizesBehind = 0x0008, kHarmlessFlags = 0x0002 | 0x0004 | kSizesBehind | 0x0800;
/// deflate cannot do better, so a larger promise is false: refused before memory is asked for.
constexpr uint64_t kHighestRatio = 1032;

constexpr uint64_t kLongestNpyHeader = 10'000;  // numpy's own limit

constexpr std::string_view kDamaged = "the file is truncated or damaged, or no .npz file: download or write it again";
constexpr std::string_view kRewrite = "write it again with numpy.savez";

struct Place {
  const std::filesystem::path& file;
  std::string_view array;  // empty: the file as a whole

  [[noreturn]] void fail(std::string_view expected, std::string_view got, std::string_view remedy = kDamaged) const {
    throw CheckpointError(cat(file.string(), ": ", array.empty() ? "" : cat("array '", printable(array), "': "),
                              "expected ", expected, ", got ", got, "; ", remedy));
  }
};

/// Little-endian fields one after the other; a field beyond the end is an error.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, const Place& place) : bytes_(bytes), place_(place) {}

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
  const Place& place_;
};

/// What the directory and the local header both say of a member; `offset` only the directory.
struct ZipEntry {
  uint16_t flags = 0, method = 0;
  uint32_t crc32 = 0;
  uint64_t stored_bytes = 0, size_bytes = 0, offset = 0;
  std::string name;
};

/// Replaces the values that stand as 0xffffffff by those of the zip64 extra field, in the format's order.
void apply_zip64(ZipEntry& entry, std::span<const std::byte> extra, const Place& place) {
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
ZipEntry read_entry(Fields& fields, uint32_t signature, const Place& place) {
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
    if (fields.take<uint16_t>() != 0) place.fail("a zip file of one part", "a member in another", kRewrite);
    fields.take_bytes(6);  // attributes
    entry.offset = fields.take<uint32_t>();
  }
  entry.name.assign(reinterpret_cast<const char*>(fields.take_bytes(name_bytes).data()), name_bytes);
  apply_zip64(entry, fields.take_bytes(extra_bytes), place);
  fields.take_bytes(comment_bytes);
  return entry;
}

/// The dictionary of a .npy header, a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
/// numpy has always written the keys in this order.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, const Place& place) : text_(text), whole_(text), place_(place) {}

  void parse(NpzArray& array) {
    for (const std::string_view word : {"{", "'descr'", ":", "'"}) expect(word);
    const size_t end = std::min(text_.find_first_of("'\\"), text_.size());
    array.descr = text_.substr(0, end);
    text_.remove_prefix(end);
    for (const std::string_view word : {"'", ",", "'fortran_order'", ":"}) expect(word);
    array.fortran_order = accept("True");
    if (!array.fortran_order) expect("False");
    for (const std::string_view word : {",", "'shape'", ":", "("}) expect(word);
    while (!accept(")")) {
      array.shape.push_back(size());
      // "(3)" is a number in Python
      if (!accept(",") && (array.shape.size() == 1 || !text_.starts_with(")"))) fail();
    }
    accept(",");
    expect("}");
    if (text_.find_first_not_of(" \n") != std::string_view::npos) fail();
  }

 private:
  [[noreturn]] void fail() const {
    place_.fail("a .npy header {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } or alike",
                cat("'", printable(whole_), "'"), kRewrite);
  }
  bool accept(std::string_view word) {
    text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size()));
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!accept(word)) fail();
  }
  int64_t size() {
    int64_t size = -1;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
    if (error != std::errc() || text_.starts_with('-')) fail();
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return size;
  }

  std::string_view text_, whole_;
  const Place& place_;
};

struct Directory {
  std::span<const std::byte> entries;
  uint64_t count = 0, offset = 0;
};

Directory find_directory(std::span<const std::byte> file, const Place& place) {
  if (file.size() < kEndBytes) place.fail("a zip file of at least 22 bytes", cat(file.size(), " bytes"));
  uint64_t end_at = file.size() - kEndBytes;
  Fields end(file.subspan(end_at), place);
  if (end.take<uint32_t>() != kEndSignature) place.fail("the end record of a zip file in the last 22 bytes", "none");
  const uint32_t parts = end.take<uint32_t>();
  uint64_t here = end.take<uint16_t>(), count = end.take<uint16_t>();
  uint64_t size = end.take<uint32_t>(), offset = end.take<uint32_t>();
  if (end.take<uint16_t>() != 0) place.fail("a zip file without a comment", "one that announces a comment", kRewrite);

  Fields locator(file.subspan(end_at - std::min(end_at, kLocator64Bytes)), place);
  // Recognised by its signature: Python writes it from 2 GiB on, where no value of the end record has to overflow.
  if (end_at >= kEnd64Bytes + kLocator64Bytes && locator.take<uint32_t>() == kLocator64Signature) {
    end_at -= kEnd64Bytes + kLocator64Bytes;
    Fields wide(file.subspan(end_at), place);
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
  if (parts != 0 || here != count) place.fail("a zip file of one part", "one of several", kRewrite);
  if (offset > end_at || size != end_at - offset)
    place.fail(cat("a zip directory that ends at byte ", end_at), cat(size, " bytes from byte ", offset));
  return {file.subspan(offset, size), count, offset};
}

/// The member's compressed bytes. `file`: up to the directory.
std::span<const std::byte> member_bytes(const ZipEntry& entry, std::span<const std::byte> file, const Place& place) {
  if ((entry.flags & ~kHarmlessFlags) != 0)
    place.fail("a zip member that is not encrypted", cat("flags ", entry.flags), kRewrite);
  if (entry.method != kStored && entry.method != kDeflated)
    place.fail("a member that is stored or deflated", cat("compression method ", entry.method), kRewrite);
  if (entry.offset > file.size()) place.fail(cat("a member before byte ", file.size()), cat("byte ", entry.offset));
  Fields fields(file.subspan(entry.offset), place);
  const ZipEntry local = read_entry(fields, kLocalSignature, place);
  const bool sizes_agree =
      local.crc32 == entry.crc32 && local.stored_bytes == entry.stored_bytes && local.size_bytes == entry.size_bytes;
  if (local.name != entry.name || local.flags != entry.flags || local.method != entry.method ||
      (!sizes_agree && (entry.flags & kSizesBehind) == 0))
    place.fail("a member whose header agrees with the zip directory", "another header");
  const auto rest = file.last(fields.left());
  if (entry.stored_bytes > rest.size())
    place.fail(cat(entry.stored_bytes, " bytes of data"), cat(rest.size(), " bytes before the zip directory"));
  if (entry.method == kStored ? entry.size_bytes != entry.stored_bytes
                              : entry.size_bytes / kHighestRatio > entry.stored_bytes)
    place.fail("a size that the data can have", cat(entry.size_bytes, " bytes from ", entry.stored_bytes));
  return rest.first(entry.stored_bytes);
}

std::optional<DType> dtype_of(std::string_view descr) {
  if (descr == "<f4") return DType::kF32;
  if (descr == "<f8") return DType::kF64;
  if (descr == "<i4") return DType::kI32;
  if (descr == "<i8") return DType::kI64;
  return std::nullopt;
}

}  // namespace

/// A member's unpacked bytes from its first one on, and their checksum.
class NpzReader::MemberStream {
 public:
  MemberStream(const Member& member, const Place& place) : member_(member), place_(place), left_(member.stored) {
    if (member.deflated && inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~MemberStream() { inflateEnd(&stream_); }  // of a stream without state: does nothing
  MemberStream(const MemberStream&) = delete;

  /// The .npy header in front of the array, with what it promises checked against the member's size. Returns its size.
  uint64_t read_header(NpzArray& array) {
    std::array<std::byte, 12> start{};
    read(std::span(start).first<10>());
    const auto version = static_cast<unsigned>(start[6]);
    if (std::memcmp(start.data(), "\x93NUMPY", 6) != 0 || version < 1 || version > 3 || start[7] != std::byte{0})
      place_.fail("a .npy array of format 1, 2 or 3", "other bytes at its beginning", kRewrite);
    const size_t prefix = version == 1 ? 10 : 12;
    if (version > 1) read(std::span(start).last<2>());
    uint32_t length = 0;
    std::memcpy(&length, start.data() + 8, prefix - 8);
    if (length > kLongestNpyHeader || prefix + length > member_.size_bytes)
      place_.fail("a .npy header of at most 10000 bytes, within its member", cat(length, " bytes"));
    std::string text(length, '\0');
    read(std::as_writable_bytes(std::span(text)));
    NpyHeader(text, place_).parse(array);

    array.dtype = dtype_of(array.descr);
    const uint64_t behind = member_.size_bytes - prefix - length;
    if (!array.dtype) return prefix + length;
    const std::optional<uint64_t> size = stored_bytes(*array.dtype, array.shape);
    if (!size) place_.fail("a shape whose size in bytes fits in 63 bits", shape_text(array.shape), kRewrite);
    if (*size != behind)
      place_.fail(cat(*size, " bytes for ", array.descr, " ", shape_text(array.shape)), cat(behind, " bytes"));
    array.size_bytes = *size;
    return prefix + length;
  }

  void read(std::span<std::byte> to) {
    if (inflate_or_copy(to) < to.size())
      place_.fail(cat(member_.size_bytes, " bytes"), "compressed data that ends before");
    // zlib takes a null pointer, which an empty array may have, for the wish to begin anew
    if (!to.empty()) crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(to.data()), to.size());
  }

  /// Call when all bytes have been read.
  void finish() {
    std::byte more{};
    if (inflate_or_copy({&more, 1}) != 0) place_.fail(cat(member_.size_bytes, " bytes"), "more compressed data");
    if (ended_ != member_.deflated || !left_.empty() || stream_.avail_in != 0)
      place_.fail("compressed data that fills its member", "data with another end");
    if (crc_ != member_.crc32) place_.fail(cat("the CRC-32 ", member_.crc32), cat(crc_));
  }

 private:
  /// How many bytes there were.
  size_t inflate_or_copy(std::span<std::byte> to) {
    if (!member_.deflated) {
      const size_t count = std::min(to.size(), left_.size());
      std::copy_n(left_.begin(), count, to.begin());
      left_ = left_.subspan(count);
      return count;
    }
    constexpr size_t kStep = size_t{1} << 30;  // zlib counts in 32 bits
    size_t done = 0;
    while (done < to.size() && !ended_) {
      if (stream_.avail_in == 0) {
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(left_.data()));
        stream_.avail_in = static_cast<uInt>(std::min(kStep, left_.size()));
        left_ = left_.subspan(stream_.avail_in);
      }
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

  const Member& member_;
  const Place& place_;
  std::span<const std::byte> left_;
  z_stream stream_{};
  bool ended_ = false;
  uLong crc_ = 0;
};

NpzReader NpzReader::open(const std::filesystem::path& path) {
  NpzReader reader;
  reader.path_ = path;
  reader.file_ = MappedFile::open(path);
  const std::span<const std::byte> file = reader.file_->bytes();
  const Place whole{path, ""};
  const Directory directory = find_directory(file, whole);
  Fields entries(directory.entries, whole);
  const std::byte* previous_end = file.data();
  for (uint64_t i = 0; i < directory.count; ++i) {
    const ZipEntry entry = read_entry(entries, kDirectorySignature, whole);
    NpzArray array;
    array.name = entry.name.substr(0, entry.name.size() - std::min<size_t>(entry.name.size(), 4));
    const Place place{path, array.name};
    if (array.name.empty() || !entry.name.ends_with(".npy"))
      whole.fail("members NAME.npy", cat("'", printable(entry.name), "'"), kRewrite);
    if (reader.contains(array.name)) place.fail("every name once", "two arrays of this name", kRewrite);
    Member member{member_bytes(entry, file.first(directory.offset), place), entry.method == kDeflated, entry.crc32,
                  entry.size_bytes, 0};
    if (file.data() + entry.offset < previous_end) place.fail("members one behind the other", "two that overlap");
    previous_end = member.stored.data() + member.stored.size();
    member.header_bytes = MemberStream(member, place).read_header(array);
    reader.arrays_.push_back(std::move(array));
    reader.members_.push_back(member);
  }
  if (entries.left() != 0) whole.fail(cat("a zip directory of ", directory.count, " entries"), "further bytes");
  return reader;
}

const NpzArray* NpzReader::find(std::string_view name) const {
  const auto found = std::ranges::find(arrays_, name, &NpzArray::name);
  return found == arrays_.end() ? nullptr : &*found;
}

const NpzArray& NpzReader::info(std::string_view name) const {
  if (const NpzArray* array = find(name)) return *array;
  std::vector<std::string> names;
  for (const NpzArray& array : arrays_) names.push_back(printable(array.name));
  Place{path_, ""}.fail(cat("an array '", printable(name), "'"), cat("a file of: ", excerpt(join(names), 300)),
                        "check the file and the name");
}

void NpzReader::read(std::string_view name, std::span<std::byte> to) const {
  const NpzArray& array = info(name);
  const Place place{path_, array.name};
  if (!array.dtype)
    place.fail("<f4, <f8, <i4 or <i8", cat("'", printable(array.descr), "'"), "convert it with numpy's astype");
  if (array.fortran_order) place.fail("C order", "Fortran order", "convert it with numpy.ascontiguousarray");
  if (to.size() != array.size_bytes)
    throw std::logic_error(cat(name, ": ", to.size(), " bytes of room for ", array.size_bytes));
  const Member& member = members_[static_cast<size_t>(&array - arrays_.data())];
  std::vector<std::byte> header(member.header_bytes);
  MemberStream stream(member, place);
  stream.read(header);
  stream.read(to);
  stream.finish();
}

}  // namespace lancet
