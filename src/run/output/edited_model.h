// An edited model as files: its weights, and what others go on with.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "lancet/deltas/stream_state.h"
#include "lancet/models/model_files.h"
#include "lancet/requests/request.h"
#include "output_form.h"

namespace lancet {

/// What was edited, besides the weights.
struct EditRecords {
  std::span<const EditRequest> earlier = {};  ///< edited by the jobs that this one goes on from
  std::span<const EditRequest> requests;
  const StreamState& stream;
  StreamFacts facts;        ///< `beside` of the owner is filled in here
  bool keeps_state = true;  ///< state/, which continue_from needs, is written too
};

/// Into `folder`, which exists and is empty: what the form writes of the weights; delta/delta.safetensors; state/;
/// requests.jsonl. Throws: CheckpointError when the disk refuses.
void write_edited_model(const ModelFiles& files, const OutputForm& form,
                        std::span<const WeightTransaction::Entry> entries, EditRecords records,
                        const std::filesystem::path& folder);

}  // namespace lancet
