// The options with which an edit changes less, for warnings. Defined in edit_verdicts.cpp and moved_weights.cpp.
#pragma once

#include <string>
#include <vector>

#include "lancet/core/config_tree.h"

namespace lancet {

/// Returns for example "raise editor.covariance_weight", "lower editor.values.clamp (now 4)": options of the method
/// that make all its changes smaller. `editor`: the resolved section of the job.
std::vector<std::string> smaller_changes(const ConfigTree& editor);

/// Returns "set editor.targets: last ...", which spreads a change over the layers; empty if the method has no such
/// option, or already has this value.
std::string spread_remedy(const ConfigTree& editor);

/// Returns ". What helps: A; B"; empty if there are no remedies.
std::string what_helps(const std::vector<std::string>& remedies);

}  // namespace lancet
