#include <algorithm>

#include "formats.h"

namespace lancet {

std::span<const FormatRow> format_table() {
  static constexpr FormatRow kFormats[] = {
      kFlatFormat,
      kListsFormat,
      {"counterfact", "requested_rewrite, an object", is_counterfact, parse_counterfact},
      {"mquake", "requested_rewrite, a list", is_mquake, parse_mquake},
      {"zsre", "src, answers; edits to alt", is_zsre, parse_zsre},
      {"zsre-true", "the same records, by name only; edits to answers[0]", nullptr, parse_zsre_true},
      {"ultraedit-zsre", "src, ans", is_ultraedit_zsre, parse_ultraedit_zsre},
      {"fever", "prompt, unrel_prompt", is_fever, parse_fever},
      {"wikibio", "concept, text, labels", is_wikibio, parse_wikibio},
      {"qaedit", "prompt, target, locality as a list", is_qaedit, parse_qaedit},
      {"wikibigedit", "update, ans", is_wikibigedit, parse_wikibigedit},
      {"ultraeditbench", "prompt, ans", is_ultraeditbench, parse_ultraeditbench},
      {"known", "prompt, attribute", is_known_fact, parse_known_fact},
      {"unke", "question, answer, sub_question", is_unke, parse_unke},
      {"editeverything", "question, answer, category", is_editeverything, parse_editeverything},
      {"akew", "CounterFact's and MQuAKE's with fact_new_uns, by name only; edits to that", nullptr, parse_akew},
  };
  return kFormats;
}

const FormatRow* find_format(std::string_view name) {
  const std::span<const FormatRow> rows = format_table();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const FormatRow& r) { return r.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace lancet
