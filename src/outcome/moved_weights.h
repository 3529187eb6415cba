// How far the edits moved the model's layers, and whether this is too far.
#pragma once

#include <string>

#include "lancet/outcome/edit_report.h"

namespace lancet {

/// Returns a warning, with what helps, about layers that moved by more than a tenth of their norm, and about one that
/// moved ten times as far as all others; empty if there are none. `editor`: the resolved section of the job.
std::string moved_warning(const EditReport& report, const ConfigTree& editor);

}  // namespace lancet
