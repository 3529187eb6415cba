// A completion made by a session: its answers while they grow, or whole.
#pragma once

#include <functional>
#include <string>

#include "completion_order.h"
#include "lancet/session/session.h"

namespace lancet {

/// What a completion is told to: pieces of a stream without their frame, or one whole answer.
using CompletionSink = std::function<void(const std::string& json)>;

/// `state`: what the answer is made of, "edits-3". Throws: as Session::generate().
void run_completion(Session& session, const CompletionOrder& order, const ServedModel& model, const std::string& state,
                    const CompletionSink& sink);

}  // namespace lancet
