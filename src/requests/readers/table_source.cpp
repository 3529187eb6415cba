#include "table_source.h"

#include <map>
#include <span>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/csv.h"

namespace lancet {
namespace {

/// The name that pandas gives to a column without a name when it reads a table, and then writes.
constexpr std::string_view kUnnamed = "Unnamed: ";

const char* name_of(char divider) {
  return divider == ',' ? "comma" : divider == ';' ? "semicolon" : divider == '\t' ? "tab" : "divider";
}

/// Removes blanks around a name.
std::string trimmed(const std::string& name) {
  const size_t begin = name.find_first_not_of(kAsciiWhiteSpace);
  if (begin == std::string::npos) return {};
  return name.substr(begin, name.find_last_not_of(kAsciiWhiteSpace) + 1 - begin);
}

/// A column of the records.
struct Column {
  std::string name;
  size_t place = 0;
  bool is_list = false;
};

class Table {
 public:
  Table(const std::string& text, const std::string& source) : source_(source), table_(parse_csv(text)) {
    if (table_.rows.empty()) throw ConfigError(cat(source, ": is empty, expected a header line"));
    check_header();
    find_columns();
  }

  std::span<const CsvRow> rows() const { return std::span(table_.rows).subspan(1); }
  const std::vector<std::string>& notes() const { return notes_; }

  std::string problem_of(const CsvRow& row) const {
    if (!row.problem.empty()) return row.problem;
    if (row.n_fields == header().n_fields) return {};
    return cat("expected ", header().n_fields, " fields, as the header line has, got ", row.n_fields,
               "; a field with a ", name_of(table_.divider),
               row.n_fields < header().n_fields ? " or a line break stands in quotes" : " stands in quotes");
  }

  RecordJson record_of(const CsvRow& row) const {
    RecordJson record = RecordJson::object();
    for (const Column& column : columns_) {
      const std::string& field = row.fields[column.place];
      if (field.empty()) continue;
      if (column.is_list)
        record[column.name].push_back(field);
      else
        record[column.name] = field;
    }
    return record;
  }

 private:
  const CsvRow& header() const { return table_.rows.front(); }

  void check_header() const {
    const std::string where = cat(source_, ": line ", header().line, ": ");
    if (!header().problem.empty()) throw ConfigError(cat(where, header().problem));
    if (header().n_fields > kMostColumns)
      throw ConfigError(cat(where, "expected at most ", kMostColumns, " columns, got ", header().n_fields,
                            ": the first line of a table has the columns' names; is this a table of requests?"));
  }

  void find_columns() {
    std::map<std::string, size_t> counts;
    std::vector<std::string> names;
    for (const std::string& field : header().fields) names.push_back(trimmed(field));
    for (const std::string& name : names) ++counts[name];
    for (size_t place = 0; place < names.size(); ++place) {
      const bool is_unnamed = names[place].empty() || names[place].starts_with(kUnnamed);
      if (is_unnamed && can_leave_out(names[place], place)) continue;
      columns_.push_back({names[place], place, counts[names[place]] > 1});
    }
  }

  /// Whether the column can be left out. Throws: ConfigError for a column without a name that has content.
  bool can_leave_out(const std::string& name, size_t place) {
    bool is_empty = true;
    const CsvRow* other = nullptr;  // the first row in which it does not have the row's number
    for (size_t i = 0; i < rows().size(); ++i) {
      const CsvRow& row = rows()[i];
      if (row.fields.size() <= place) continue;  // this is reported as the row's own problem
      is_empty = is_empty && is_blank(row.fields[place]);
      if (other == nullptr && row.fields[place] != std::to_string(i)) other = &row;
    }
    if (is_empty) return true;
    const std::string called =
        cat("column ", place + 1, name.empty() ? std::string(" has no name") : cat(" is called ", name));
    if (other == nullptr) {
      notes_.push_back(cat(source_, ": ", called, " and counts the rows, as pandas writes a table's index: left out; ",
                           "to_csv(FILE, index=False) writes none"));
      return true;
    }
    throw ConfigError(cat(source_, ": line ", header().line, ": ", called, ": pandas writes a table's index so ",
                          "(to_csv(FILE, index=False) writes none): expected 0, 1, 2, ... there, which are left out, ",
                          "got \"", excerpt(other->fields[place], 40), "\" in line ", other->line,
                          "; take the column out, or give it a name (id, where it tells the facts apart)"));
  }

  const std::string& source_;
  CsvTable table_;
  std::vector<Column> columns_;
  std::vector<std::string> notes_;
};

}  // namespace

SourceRecords read_table(const std::string& text, const std::string& source, RequestRange range) {
  const Table table(text, source);
  const auto [first, end] = taken_records(range, table.rows().size(), source);
  SourceRecords out{.records = {}, .kind = SourceKind::kTable, .notes = table.notes()};
  for (size_t i = first; i < end; ++i) {
    const CsvRow& row = table.rows()[i];
    SourceRecord record{{}, {source, static_cast<int64_t>(i), cat("line ", row.line)}, table.problem_of(row)};
    if (record.problem.empty()) record.json = table.record_of(row);
    out.records.push_back(std::move(record));
  }
  return out;
}

}  // namespace lancet
