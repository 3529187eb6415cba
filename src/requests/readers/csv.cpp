#include "csv.h"

namespace lancet {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

class CsvScanner {
 public:
  explicit CsvScanner(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }

  CsvRow next_row() {
    CsvRow row;
    row.line = line_;
    do row.fields.push_back(next_field(row.problem));
    while (take(','));
    take_line_end();
    return row;
  }

 private:
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  size_t line_end_bytes() const {
    const std::string_view rest = text_.substr(at_);
    return rest.starts_with("\r\n") ? 2 : rest.starts_with('\n') ? 1 : 0;
  }

  void take_line_end() {
    const size_t bytes = line_end_bytes();
    at_ += bytes;
    line_ += bytes > 0 ? 1 : 0;
  }

  bool field_ends() const { return at_end() || text_[at_] == ',' || line_end_bytes() > 0; }

  std::string next_field(std::string& problem) {
    std::string field;
    const bool is_quoted = take('"');
    if (is_quoted) field = quoted(problem);
    if (is_quoted && !field_ends()) problem = "text after a closing quote";
    while (!field_ends()) {
      if (text_[at_] == '"') problem = "a quote inside a field that is not in quotes; write \"\" in a field in quotes";
      field += text_[at_++];
    }
    return field;
  }

  /// Reads up to the closing quote; two quotes stand for one.
  std::string quoted(std::string& problem) {
    std::string field;
    while (!at_end()) {
      const char c = text_[at_++];
      if (c == '"' && !take('"')) return field;
      if (c == '\n') ++line_;
      field += c;
    }
    problem = "a quote that is never closed";
    return field;
  }

  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace

std::vector<CsvRow> parse_csv(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  CsvScanner scanner(text);
  std::vector<CsvRow> rows;
  while (!scanner.at_end()) {
    CsvRow row = scanner.next_row();
    const bool is_blank = row.fields.size() == 1 && row.problem.empty() &&
                          row.fields.front().find_first_not_of(" \t\r") == std::string::npos;
    if (!is_blank) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace lancet
