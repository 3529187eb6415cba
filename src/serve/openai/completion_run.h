// Runs a completion in a session. Answers are streamed, or given as a whole.
#pragma once

#include <functional>
#include <string>

#include "completion_order.h"
#include "lancet/session/session.h"

namespace lancet {

/// Receives the pieces of a stream without their frame, or one whole answer.
using CompletionSink = std::function<void(const std::string& json)>;

/// `state`: the edits in the model, "edits-3". Throws: as Session::generate().
void run_completion(Session& session, const CompletionOrder& order, const ServedModel& model, const std::string& state,
                    const CompletionSink& sink);

}  // namespace lancet
