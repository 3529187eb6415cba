// Requests' tokens in a stream's state: what earlier batches were edited for, to train on it again.
#pragma once

#include <span>
#include <vector>

#include "lancet/deltas/stream_state.h"
#include "lancet/requests/prepared_request.h"

namespace lancet {

/// The texts that keep_texts() put into the state, in their order, but for those whose prompt stands again: in a later
/// one, or in `fresh`. So no old answer is held against a newer one. Throws: CheckpointError when ids and sizes do not
/// fit one another.
std::vector<TokenizedRequest> kept_texts(const EditorState& state, std::span<const TokenizedRequest> fresh = {});

/// Puts texts after those that the state has: `texts.ids` [1, tokens] and `texts.sizes` [2, texts] of prompts and
/// targets, i64.
void keep_texts(EditorState& state, std::span<const TokenizedRequest> texts);

}  // namespace lancet
