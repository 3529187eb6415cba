// The formats of request files. A row says how a record of the format is known and how it is read; the table is
// format_table().
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "record_reader.h"

namespace lancet {

/// What a record of a format has. Without keys the format is chosen by name only.
struct FormatMarks {
  std::array<std::string_view, 3> keys = {};
  std::array<std::string_view, 2> either = {};   ///< keys of which it has one or both
  std::string_view list = {};                    ///< key of a list
  std::string_view no_list = {};                 ///< key that has no list, if it is there
  std::array<std::string_view, 2> none_of = {};  ///< keys of which it has none
  std::array<std::string_view, 2> in_each = {};  ///< the record has objects alone, each with these keys
};

struct FormatRow {
  std::string_view name;  ///< name in requests.format
  FormatMarks marks;
  /// Most records are one request; none when the record is bad.
  std::vector<EditRequest> (*parse)(RecordReader& reader);
};

std::vector<EditRequest> parse_flat(RecordReader& reader);
std::vector<EditRequest> parse_counterfact(RecordReader& reader);
std::vector<EditRequest> parse_mquake(RecordReader& reader);
std::vector<EditRequest> parse_zsre(RecordReader& reader);
std::vector<EditRequest> parse_zsre_true(RecordReader& reader);
std::vector<EditRequest> parse_zsre_alt(RecordReader& reader);
std::vector<EditRequest> parse_bmike(RecordReader& reader);
std::vector<EditRequest> parse_bmike_second(RecordReader& reader);
std::vector<EditRequest> parse_ultraedit_zsre(RecordReader& reader);
std::vector<EditRequest> parse_fever(RecordReader& reader);
std::vector<EditRequest> parse_wikibio(RecordReader& reader);
std::vector<EditRequest> parse_qaedit(RecordReader& reader);
std::vector<EditRequest> parse_wikibigedit(RecordReader& reader);
std::vector<EditRequest> parse_ultraeditbench(RecordReader& reader);
std::vector<EditRequest> parse_known_fact(RecordReader& reader);
std::vector<EditRequest> parse_unke(RecordReader& reader);
std::vector<EditRequest> parse_editeverything(RecordReader& reader);
std::vector<EditRequest> parse_akew(RecordReader& reader);
std::vector<EditRequest> parse_cknowedit(RecordReader& reader);
std::vector<EditRequest> parse_hallueditbench(RecordReader& reader);

inline constexpr FormatRow kFlatFormat{
    "flat",
    {.keys = {"prompt"}, .either = {"target", "target_new"}, .no_list = "locality", .none_of = {"target_old"}},
    parse_flat};
/// A file of it is one object of lists; its records are made of them, in the flat shape.
inline constexpr FormatRow kListsFormat{"easyedit-lists", {}, parse_flat};

/// Notes a problem for every key that the flat format does not know: for one's own records.
void refuse_unknown_keys(RecordReader& reader);

std::span<const FormatRow> format_table();
bool has_marks(const RecordJson& record, const FormatMarks& marks);
/// Null when there is none of the name.
const FormatRow* find_format(std::string_view name);

}  // namespace lancet
