// The tokens of earlier batches' requests, kept in a stream's state to train on them again.
#pragma once

#include <span>
#include <vector>

#include "lancet/deltas/stream_state.h"
#include "lancet/requests/prepared_request.h"

namespace lancet {

/// Returns the texts that keep_texts() put into the state, in order. Leaves out texts whose prompt appears again, in a
/// later text or in `fresh`, so that an old answer never competes with a newer one. Throws: CheckpointError if ids and
/// sizes do not fit each other.
std::vector<TokenizedRequest> kept_texts(const EditorState& state, std::span<const TokenizedRequest> fresh = {});

/// Appends texts to those in the state: `texts.ids` [1, tokens], and `texts.sizes` [2, texts] of prompts and targets,
/// i64.
void keep_texts(EditorState& state, std::span<const TokenizedRequest> texts);

}  // namespace lancet
