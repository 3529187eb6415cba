// Any method with its changes made milder: options that every editor has.
#pragma once

#include <memory>

#include "lancet/core/config_section.h"
#include "lancet/editing/editor.h"

namespace lancet {

/// The method itself, or with `rect: {keep: SHARE}` (every change, as it is applied) and `prune: {log_base: B}` (the
/// whole change of each weight, after the last batch) where `editor:` has them.
std::unique_ptr<Editor> with_filters(std::unique_ptr<Editor> method, ConfigSection& editor);

}  // namespace lancet
