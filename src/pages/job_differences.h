// Finds the keys in which the jobs of several runs differ.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace lancet::page {

struct JobDifference {
  std::string key;                  ///< dotted
  std::vector<std::string> values;  ///< the value in each job; empty if the job does not have the key
};

/// `jobs`: YAML texts; an empty text means an unknown job, whose values are empty. Keys that only say where files are
/// written are left out. The result has the order of the first job that has the key. Throws: ConfigError if a text is
/// not YAML.
std::vector<JobDifference> job_differences(std::span<const std::string> jobs);

}  // namespace lancet::page
