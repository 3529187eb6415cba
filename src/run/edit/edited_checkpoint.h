// An edited model as files: the checkpoint with its edited weights, and what others go on with.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "lancet/deltas/stream_state.h"
#include "lancet/models/model_files.h"
#include "lancet/requests/request.h"

namespace lancet {

/// What was edited, besides the weights.
struct EditRecords {
  std::span<const EditRequest> earlier = {};  ///< edited by the jobs that this one goes on from
  std::span<const EditRequest> requests;
  const StreamState& stream;
  StreamFacts facts;        ///< `beside` of the owner is filled in here
  bool keeps_state = true;  ///< state/, which continue_from needs, is written too
};

/// Into `folder`, which exists and is empty: the edited weights in the types they are stored in beside the untouched
/// rest of the checkpoint; delta/delta.safetensors; state/; requests.jsonl. Throws: CheckpointError when the disk
/// refuses.
void write_edited_checkpoint(const ModelFiles& files, std::span<const WeightTransaction::Entry> entries,
                             EditRecords records, const std::filesystem::path& folder);

}  // namespace lancet
