// Which options of an edit make it do less, for warnings. Defined in edit_verdicts.cpp and moved_weights.cpp.
#pragma once

#include <string>
#include <vector>

#include "lancet/core/config_tree.h"

namespace lancet {

/// "raise editor.covariance_weight", "lower editor.values.clamp (now 4)": options that the method has, by which all its
/// changes are smaller. `editor`: the resolved section of the job.
std::vector<std::string> smaller_changes(const ConfigTree& editor);

/// "set editor.targets: last ...": what spreads a change over the layers; empty: the method has no such option, or
/// does so.
std::string spread_remedy(const ConfigTree& editor);

/// ". What helps: A; B"; empty: nothing is known to.
std::string what_helps(const std::vector<std::string>& remedies);

}  // namespace lancet
