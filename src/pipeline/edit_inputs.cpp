#include "lancet/pipeline/edit_inputs.h"

#include <algorithm>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/pipeline/facts_at_odds.h"
#include "lancet/pipeline/same_job.h"

namespace lancet {

void EditInputs::look_at_facts(std::span<const EditRequest> standing) {
  at_odds = facts_at_odds({requests, standing, joined});
  for (const std::string& line : at_odds) log_warning(line);
}

void EditInputs::describe(const CausalLM& model, Communicator& ranks) {
  model_dtype = precision_text(model);
  const std::vector<std::string> all = ranks.gather(model.placement().description());
  devices = all.front();
  if (std::count(all.begin(), all.end(), all.front()) != ranks.size()) {
    devices.clear();
    for (size_t rank = 0; rank < all.size(); ++rank)
      devices += cat(rank == 0 ? "" : "; ", "rank ", rank, ": ", all[rank]);
  }
  base_hash = same_content_hash(ranks, files.checkpoint);
}

}  // namespace lancet
