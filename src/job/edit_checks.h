// What an edit checks before any weight is read; a rehearsal does so for the whole job too.
#pragma once

#include <vector>

#include "lancet/job/model_session.h"

namespace lancet {

/// Everything about the requests that can fail without a model pass. Throws: ConfigError.
void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor);

}  // namespace lancet
