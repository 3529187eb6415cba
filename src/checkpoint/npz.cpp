#include "lancet/checkpoint/npz.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "safetensors_format.h"
#include "zip_file.h"

namespace lancet {
namespace {

constexpr uint64_t kLongestNpyHeader = 10'000;  // numpy's own limit

constexpr ZipKind kNpz{"the file is truncated or damaged, or no .npz file: download or write it again",
                       "write it again with numpy.savez"};

ZipPlace place_of(const std::filesystem::path& file, std::string_view array) {
  return {file, kNpz, cat("array '", printable(array), "'")};
}

/// The dictionary of a .npy header, a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
/// numpy has always written the keys in this order.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, const ZipPlace& place) : text_(text), whole_(text), place_(place) {}

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
                cat("'", printable(whole_), "'"), place_.kind.rewrite);
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
  const ZipPlace& place_;
};

std::optional<DType> npy_dtype(std::string_view descr) {
  if (descr == "<f4") return DType::kF32;
  if (descr == "<f8") return DType::kF64;
  if (descr == "<i4") return DType::kI32;
  if (descr == "<i8") return DType::kI64;
  return std::nullopt;
}

/// The .npy header before the array, with what it promises checked against the member's size. Returns its size.
uint64_t read_npy_header(ZipMemberStream& stream, uint64_t member_bytes, const ZipPlace& place, NpzArray& array) {
  std::array<std::byte, 12> start{};
  stream.read(std::span(start).first<10>());
  const auto version = static_cast<unsigned>(start[6]);
  if (std::memcmp(start.data(), "\x93NUMPY", 6) != 0 || version < 1 || version > 3 || start[7] != std::byte{0})
    place.fail("a .npy array of format 1, 2 or 3", "other bytes at its beginning", place.kind.rewrite);
  const size_t prefix = version == 1 ? 10 : 12;
  if (version > 1) stream.read(std::span(start).last<2>());
  uint32_t length = 0;
  std::memcpy(&length, start.data() + 8, prefix - 8);
  if (length > kLongestNpyHeader || prefix + length > member_bytes)
    place.fail("a .npy header of at most 10000 bytes, within its member", cat(length, " bytes"));
  std::string text(length, '\0');
  stream.read(std::as_writable_bytes(std::span(text)));
  NpyHeader(text, place).parse(array);

  array.dtype = npy_dtype(array.descr);
  const uint64_t after = member_bytes - prefix - length;
  if (!array.dtype) return prefix + length;
  const std::optional<uint64_t> size = stored_bytes(*array.dtype, array.shape);
  if (!size) place.fail("a shape whose size in bytes fits in 63 bits", shape_text(array.shape), place.kind.rewrite);
  if (*size != after)
    place.fail(cat(*size, " bytes for ", array.descr, " ", shape_text(array.shape)), cat(after, " bytes"));
  array.size_bytes = *size;
  return prefix + length;
}

}  // namespace

struct NpzReader::Member {
  ZipMember zip;
  uint64_t header_bytes = 0;  ///< bytes of the .npy header; the array follows
};

NpzReader NpzReader::open(const std::filesystem::path& path) {
  NpzReader reader;
  reader.path_ = path;
  reader.file_ = MappedFile::open(path);
  for (ZipMember& member : read_zip_members(*reader.file_, kNpz)) {
    NpzArray array;
    array.name = member.name.substr(0, member.name.size() - std::min<size_t>(member.name.size(), 4));
    const ZipPlace place = place_of(path, array.name);
    if (array.name.empty() || !member.name.ends_with(".npy"))
      ZipPlace{path, kNpz}.fail("members NAME.npy", cat("'", printable(member.name), "'"), kNpz.rewrite);
    ZipMemberStream stream(*reader.file_, member, place);
    const uint64_t header_bytes = read_npy_header(stream, member.size_bytes, place, array);
    reader.arrays_.push_back(std::move(array));
    reader.members_.push_back(std::make_shared<const Member>(Member{std::move(member), header_bytes}));
  }
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
  ZipPlace{path_, kNpz}.fail(cat("an array '", printable(name), "'"), cat("a file of: ", excerpt(join(names), 300)),
                             "check the file and the name");
}

void NpzReader::read(std::string_view name, std::span<std::byte> to) const {
  const NpzArray& array = info(name);
  const ZipPlace place = place_of(path_, array.name);
  if (!array.dtype)
    place.fail("<f4, <f8, <i4 or <i8", cat("'", printable(array.descr), "'"), "convert it with numpy's astype");
  if (array.fortran_order) place.fail("C order", "Fortran order", "convert it with numpy.ascontiguousarray");
  if (to.size() != array.size_bytes)
    throw std::logic_error(cat(name, ": ", to.size(), " bytes of room for ", array.size_bytes));
  const Member& member = *members_[static_cast<size_t>(&array - arrays_.data())];
  std::vector<std::byte> header(member.header_bytes);
  ZipMemberStream stream(*file_, member.zip, place);
  stream.read(header);
  stream.read(to);
  stream.finish();
}

}  // namespace lancet
