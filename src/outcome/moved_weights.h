// How far the edits moved the model's layers, and whether that is too far.
#pragma once

#include <string>

#include "lancet/outcome/edit_report.h"

namespace lancet {

/// Warns of layers that moved by more than a tenth of their norm, and of one that moved ten times as far as all others;
/// with what helps. Empty: there is none. `editor`: the resolved section of the job.
std::string moved_warning(const EditReport& report, const ConfigTree& editor);

}  // namespace lancet
