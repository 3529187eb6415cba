#include "lancet/io/csv.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr std::string_view kTableMark = "\xef\xbb\xbf";

class CsvScanner {
 public:
  CsvScanner(std::string_view text, char divider) : text_(text), divider_(divider) {}

  bool at_end() const { return at_ >= text_.size(); }

  CsvRow next_row() {
    CsvRow row;
    row.line = line_;
    do {
      std::string field = next_field(row.problem);
      if (++row.n_fields <= kMostColumns) row.fields.push_back(std::move(field));
    } while (take(divider_));
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
    return rest.starts_with("\r\n") ? 2 : rest.starts_with('\n') || rest.starts_with('\r') ? 1 : 0;
  }

  void take_line_end() {
    const size_t bytes = line_end_bytes();
    at_ += bytes;
    line_ += bytes > 0 ? 1 : 0;
  }

  bool field_ends() const { return at_end() || text_[at_] == divider_ || line_end_bytes() > 0; }

  std::string next_field(std::string& problem) {
    std::string field;
    const bool is_quoted = take('"');
    if (is_quoted) field = quoted(problem);
    if (is_quoted && !field_ends()) problem = "text after a closing quote";
    while (!field_ends()) {
      if (text_[at_] == '"' && problem.empty()) problem = stray_quote(field);
      field += text_[at_++];
    }
    return field;
  }

  static std::string stray_quote(const std::string& before) {
    if (!before.empty() && is_blank(before)) return "a blank before a field in quotes: take the blank away";
    return "a quote inside a field that is not in quotes; write \"\" in a field in quotes";
  }

  /// Reads up to the closing quote. Two quotes mean one.
  std::string quoted(std::string& problem) {
    std::string field;
    while (!at_end()) {
      const char c = text_[at_++];
      if (c == '"' && !take('"')) return field;
      if (c == '\n' || (c == '\r' && !text_.substr(at_).starts_with('\n'))) ++line_;
      field += c;
    }
    problem = "a quote that is never closed";
    return field;
  }

  std::string_view text_;
  char divider_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

bool is_nothing(const CsvRow& row) { return row.problem.empty() && std::ranges::all_of(row.fields, is_blank); }

/// Returns the character that a first line `sep=;` names, with or without quotes; 0 if there is no such line.
char named_divider(std::string_view text) {
  std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  if (line.size() == 7 && line.starts_with('"') && line.ends_with('"')) line = line.substr(1, 5);
  if (line.size() != 5 || line[4] == '"') return 0;
  std::string key(line.substr(0, 4));
  std::ranges::transform(key, key.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return key == "sep=" ? line[4] : '\0';
}

/// Guesses the character that divides the columns, if the table does not name it.
char likely_divider(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  const auto n_columns = [&](char divider) { return CsvScanner(text, divider).next_row().n_fields; };
  if (n_columns(',') > 1) return ',';
  const size_t by_semicolons = n_columns(';'), by_tabs = n_columns('\t');
  if (std::max(by_semicolons, by_tabs) < 2) return ',';
  return by_semicolons >= by_tabs ? ';' : '\t';
}

}  // namespace

CsvTable parse_csv(std::string_view text) {
  while (text.starts_with(kTableMark)) text.remove_prefix(kTableMark.size());
  const char named = named_divider(text);
  CsvTable table{.divider = named == 0 ? likely_divider(text) : named, .rows = {}};
  CsvScanner scanner(text, table.divider);
  if (named != 0) scanner.next_row();
  while (!scanner.at_end()) {
    CsvRow row = scanner.next_row();
    if (!is_nothing(row)) table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace lancet
