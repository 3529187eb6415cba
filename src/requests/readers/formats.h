// The formats of request files. A row says how a record of the format is recognised and how it is read. The table is
// format_table().
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "record_reader.h"

namespace lancet {

/// The keys by which a format is recognised. A format without keys is chosen only by name.
struct FormatMarks {
  std::array<std::string_view, 3> keys = {};
  std::array<std::string_view, 2> either = {};   ///< the record has at least one of these keys
  std::string_view list = {};                    ///< key that has a list as its value
  std::string_view no_list = {};                 ///< key that does not have a list, if it is there
  std::array<std::string_view, 2> none_of = {};  ///< the record has none of these keys
  std::array<std::string_view, 2> in_each = {};  ///< all values of the record are objects with these keys
};

struct FormatRow {
  std::string_view name;  ///< name for requests.format
  FormatMarks marks;
  /// Most records give one request; a bad record gives none.
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
/// A file of this format is one object with lists, from which records in the flat format are made.
inline constexpr FormatRow kListsFormat{"easyedit-lists", {}, parse_flat};

/// Adds a problem for every key that the flat format does not have. For the user's own records.
void refuse_unknown_keys(RecordReader& reader);

std::span<const FormatRow> format_table();
bool has_marks(const RecordJson& record, const FormatMarks& marks);
/// Returns null if there is no format with this name.
const FormatRow* find_format(std::string_view name);

}  // namespace lancet
