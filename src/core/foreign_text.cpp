#include "lancet/core/foreign_text.h"

#include <algorithm>
#include <cctype>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

using namespace std::string_view_literals;

struct Beginning {
  std::string_view bytes;
  const char* meaning;
};

// UTF-32 is before UTF-16, because its mark begins with that of UTF-16
constexpr Beginning kBeginnings[] = {
    {"\x1f\x8b"sv, "is compressed by gzip: unpack it first (gunzip)"},
    {"BZh9"sv, "is compressed by bzip2: unpack it first (bunzip2)"},
    {"\xfd"
     "7zXZ"sv,
     "is compressed by xz: unpack it first (unxz)"},
    {"\x28\xb5\x2f\xfd"sv, "is compressed by zstd: unpack it first (unzstd)"},
    {"PK\x03\x04"sv, "is a zip archive or a workbook of Excel (.xlsx): unpack it, or save the sheet as \"CSV UTF-8\""},
    {"\xd0\xcf\x11\xe0"sv, "is an old workbook of Excel (.xls): save the sheet as \"CSV UTF-8\""},
    {"PAR1"sv,
     "is a Parquet file: pandas.read_parquet(FILE).to_json(OUT, orient='records', lines=True) makes .jsonl of it"},
    {"ARROW1\0\0"sv,
     "is an Arrow file: pandas.read_feather(FILE).to_json(OUT, orient='records', lines=True) makes .jsonl of it"},
    {"\x80\x04\x95"sv, "is a pickle of Python: write the records with json.dump"},
    {"\x80\x05\x95"sv, "is a pickle of Python: write the records with json.dump"},
    {"SQLite format 3"sv, "is a database of SQLite: export its table as CSV"},
    {"%PDF"sv, "is a PDF"},
    {"version https://git-lfs"sv, "is a pointer of Git LFS in the place of the file: git lfs pull brings the file"},
    {"\xff\xfe\x00\x00"sv, "is UTF-32: save it as UTF-8"},
    {"\xff\xfe"sv, "is UTF-16, as Windows PowerShell's > and Excel's \"Unicode Text\" write it: save it as UTF-8"},
    {"\xfe\xff"sv, "is UTF-16: save it as UTF-8"},
};

bool is_web_page(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kAsciiWhiteSpace), text.size()));
  std::string head(text.substr(0, 14));
  std::ranges::transform(head, head.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return head.starts_with("<!doctype html") || head.starts_with("<html");
}

/// Whether the text looks like UTF-16: Latin letters then have one byte 0 each.
bool is_utf16_without_mark(std::string_view text) {
  if (text.size() < 4) return false;
  const auto zero = [&](size_t at) { return text[at] == '\0'; };
  return (zero(1) && zero(3) && !zero(0) && !zero(2)) || (zero(0) && zero(2) && !zero(1) && !zero(3));
}

}  // namespace

std::optional<std::string> foreign_file(std::string_view text) {
  for (const Beginning& beginning : kBeginnings)
    if (text.starts_with(beginning.bytes)) return beginning.meaning;
  if (is_web_page(text))
    return "is a web page in the place of the file: a repository's page has a link to the file itself (\"raw\")";
  if (is_utf16_without_mark(text)) return "is UTF-16: save it as UTF-8";
  return std::nullopt;
}

std::string BadByte::text() const {
  if (value == 0) return "has a byte 0, which no text has: the file is damaged, or is no text";
  return cat("the byte ", value, " is no UTF-8: save the file as UTF-8");
}

std::optional<BadByte> find_bad_byte(std::string_view text) {
  BadByte found;
  for (size_t at = 0; at < text.size();) {
    found.value = static_cast<unsigned char>(text[at]);
    const size_t bytes = decode_utf8_at(text, at).bytes;
    if (bytes == 0 || text[at] == '\0') return found;
    found.line += text[at] == '\n' ? 1 : 0;
    at += bytes;
  }
  return std::nullopt;
}

}  // namespace lancet
