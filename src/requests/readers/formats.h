// The formats of request files. A row says how a record of the format is known and how it is read; the table is
// format_table().
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "record_reader.h"

namespace lancet {

struct FormatRow {
  std::string_view name;                      ///< name in requests.format
  std::string_view marks;                     ///< marks of its records, in words
  bool (*matches)(const RecordJson& record);  ///< null: never found by content
  /// Most records are one request; none when the record is bad.
  std::vector<EditRequest> (*parse)(RecordReader& reader);
};

bool is_flat(const RecordJson& record);
bool is_counterfact(const RecordJson& record);
bool is_mquake(const RecordJson& record);
bool is_zsre(const RecordJson& record);
bool is_ultraedit_zsre(const RecordJson& record);
bool is_fever(const RecordJson& record);
bool is_wikibio(const RecordJson& record);
bool is_qaedit(const RecordJson& record);
bool is_wikibigedit(const RecordJson& record);
bool is_ultraeditbench(const RecordJson& record);
bool is_known_fact(const RecordJson& record);
bool is_unke(const RecordJson& record);
bool is_editeverything(const RecordJson& record);

std::vector<EditRequest> parse_flat(RecordReader& reader);
std::vector<EditRequest> parse_counterfact(RecordReader& reader);
std::vector<EditRequest> parse_mquake(RecordReader& reader);
std::vector<EditRequest> parse_zsre(RecordReader& reader);
std::vector<EditRequest> parse_zsre_true(RecordReader& reader);
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

inline constexpr FormatRow kFlatFormat{"flat", "prompt, target or target_new", is_flat, parse_flat};
/// A file of it is one object of lists; its records are made of them, in the flat shape.
inline constexpr FormatRow kListsFormat{"easyedit-lists", "an object of lists: prompts, target_new", nullptr,
                                        parse_flat};

/// Notes a problem for every key that the flat format does not know: for one's own records.
void refuse_unknown_keys(RecordReader& reader);

std::span<const FormatRow> format_table();
/// Null when there is none of the name.
const FormatRow* find_format(std::string_view name);

}  // namespace lancet
