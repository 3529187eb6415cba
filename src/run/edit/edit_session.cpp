#include "edit_session.h"

#include <algorithm>

#include "lancet/core/strings.h"
#include "same_job.h"

namespace lancet {

void EditSession::describe(const CausalLM& model, Communicator& ranks) {
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
