#include <algorithm>

#include "formats.h"

namespace lancet {

std::span<const FormatRow> format_table() {
  static constexpr FormatRow kFormats[] = {
      kFlatFormat,
      kListsFormat,
      {"counterfact", {.keys = {"requested_rewrite"}, .no_list = "requested_rewrite"}, parse_counterfact},
      {"mquake", {.keys = {"requested_rewrite"}, .list = "requested_rewrite"}, parse_mquake},
      // the target is alt
      {"zsre", {{"src", "answers"}}, parse_zsre},
      // zsre's records; the target is answers[0]
      {"zsre-true", {}, parse_zsre_true},
      // zsRE's records without a true answer
      {"zsre-alt", {.keys = {"src", "alt"}, .none_of = {"answers", "ans"}}, parse_zsre_alt},
      // a fact in two languages: the edit is in the first, or in the second
      {"bmike", {.in_each = {"src", "alt"}}, parse_bmike},
      {"bmike-second", {}, parse_bmike_second},
      {"ultraedit-zsre", {{"src", "ans"}}, parse_ultraedit_zsre},
      {"fever", {{"prompt", "unrel_prompt"}}, parse_fever},
      {"wikibio", {{"concept", "text", "labels"}}, parse_wikibio},
      {"qaedit", {.keys = {"prompt", "target"}, .list = "locality"}, parse_qaedit},
      {"wikibigedit", {{"update", "ans"}}, parse_wikibigedit},
      {"ultraeditbench", {{"prompt", "ans"}}, parse_ultraeditbench},
      {"known", {{"prompt", "attribute"}}, parse_known_fact},
      {"unke", {{"question", "answer", "sub_question"}}, parse_unke},
      {"editeverything", {{"question", "answer", "category"}}, parse_editeverything},
      // CounterFact's and MQuAKE's records with fact_new_uns, which is the target
      {"akew", {}, parse_akew},
      {"cknowedit", {{"prompt", "target_new", "target_old"}}, parse_cknowedit},
      {"hallueditbench",
       {.keys = {"subject", "relation", "question"}, .either = {"object", "label"}},
       parse_hallueditbench},
  };
  return kFormats;
}

namespace {

bool has_in_each(const RecordJson& record, std::span<const std::string_view> keys) {
  return !record.empty() && std::ranges::all_of(record, [&](const RecordJson& part) {
    return part.is_object() && std::ranges::all_of(keys, [&](std::string_view key) { return part.contains(key); });
  });
}

}  // namespace

bool has_marks(const RecordJson& record, const FormatMarks& marks) {
  if (!marks.in_each.front().empty()) return has_in_each(record, marks.in_each);
  if (marks.keys.front().empty()) return false;
  const auto has = [&](std::string_view key) { return key.empty() || record.contains(key); };
  const auto is_list = [&](std::string_view key) { return record.contains(key) && record.at(key).is_array(); };
  const auto& [one, other] = marks.either;
  return std::ranges::all_of(marks.keys, has) && (has(one) || has(other)) &&
         (marks.list.empty() || is_list(marks.list)) && (marks.no_list.empty() || !is_list(marks.no_list)) &&
         std::ranges::none_of(marks.none_of, [&](std::string_view key) { return !key.empty() && has(key); });
}

const FormatRow* find_format(std::string_view name) {
  const std::span<const FormatRow> rows = format_table();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const FormatRow& r) { return r.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace lancet
