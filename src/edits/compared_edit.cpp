#include "compared_edit.h"

#include <algorithm>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// With runs of white space as one space, and none at the ends.
std::string one_spaced(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n\v\f";
  std::string out;
  for (size_t at = text.find_first_not_of(kWhite); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kWhite, at), text.size());
    out += cat(out.empty() ? "" : " ", text.substr(at, end - at));
    at = text.find_first_not_of(kWhite, end);
  }
  return out;
}

ComparedEdit compared(const EditRecord& edit, EditPlace place) {
  const EditRequest& request = edit.request;
  std::string prompt = request.prompt.text;
  const ByteSpan subject = request.prompt.subject;
  if (subject.end > subject.begin)
    prompt.replace(static_cast<size_t>(subject.begin), static_cast<size_t>(subject.end - subject.begin), kPlaceMark);
  ComparedEdit compared{.place = std::move(place),
                        .subject = one_spaced(request.subject),
                        .relation = one_spaced(request.relation),
                        .target = one_spaced(request.target),
                        .target_id = one_spaced(request.target_id),
                        .prompt = one_spaced(prompt)};
  for (const std::string& alias : request.target_aliases) compared.aliases.insert(one_spaced(alias));
  compared.key_ids.assign(edit.prompt_ids.begin(), edit.prompt_ids.begin() + edit.lookup + 1);
  return compared;
}

}  // namespace

std::vector<ComparedEdit> compared_edits(std::span<const EditHistory* const> histories) {
  std::vector<ComparedEdit> edits;
  for (size_t h = 0; h < histories.size(); ++h) {
    const std::vector<BatchEntry>& batches = histories[h]->journal().batches();
    for (size_t b = 0; b < batches.size(); ++b)
      for (size_t e = 0; e < batches[b].edits.size(); ++e)
        edits.push_back(compared(batches[b].edits[e], {h, b, e, batches[b].edits[e].request.id}));
  }
  return edits;
}

bool has_same_target(const ComparedEdit& one, const ComparedEdit& other) {
  return one.target == other.target || one.aliases.contains(other.target) || other.aliases.contains(one.target) ||
         (!one.target_id.empty() && one.target_id == other.target_id);
}

}  // namespace lancet
