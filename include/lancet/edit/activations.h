// The one capture of hidden states at lookup tokens, for every method.
#pragma once

#include <span>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/runtime/communicator.h"
#include "lancet/text/prompt.h"

namespace lancet {

/// Collective: batches are spread over ranks. The site's value at each row's lookup token: [rows, dim], model dtype, on
/// the site's layer's device, in the order of `rows`. Tokens behind the lookup token are not run (they cannot matter),
/// nor is anything behind the site.
Tensor collect_at(const CausalLM& model, std::span<const LocatedPrompt* const> rows, HookSite site,
                  Communicator& communicator);

}  // namespace lancet
