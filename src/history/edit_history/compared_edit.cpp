#include "compared_edit.h"

#include "lancet/requests/same_fact.h"

namespace lancet {
namespace {

ComparedEdit compared(const EditRecord& edit, EditPlace place) {
  const EditRequest& request = edit.request;
  ComparedEdit compared{.place = std::move(place),
                        .request = &request,
                        .subject = evenly_spaced(request.subject),
                        .relation = evenly_spaced(request.relation),
                        .target = evenly_spaced(request.target),
                        .prompt = marked_prompt(request.prompt)};
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
  return has_same_target(*one.request, *other.request);
}

}  // namespace lancet
