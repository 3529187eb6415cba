// Keys of a job that had another name in an earlier version: their old names still hold for one more.
#pragma once

#include <string>
#include <vector>

#include "lancet/core/config_tree.h"

namespace lancet {

struct PresentNames {
  ConfigTree tree;
  std::vector<std::string> renamed;  ///< lines for the log: "run.frozen is called run.quantise_base now"
};

/// Returns the job with the present names of its keys. Throws: ConfigError where a key stands by both names.
PresentNames with_present_names(ConfigTree job, const std::string& source);

/// Likewise for options of an editor by themselves.
ConfigTree options_with_present_names(ConfigTree options, const std::string& source);

}  // namespace lancet
