// What the jobs of several runs differ in, key by key.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace lancet::page {

struct JobDifference {
  std::string key;                  ///< dotted
  std::vector<std::string> values;  ///< value of each job; empty: it has no such key
};

/// `jobs`: YAML texts; an empty one is not known, and its values are empty. Keys that say where things are written are
/// left out. In the order of the first job that has the key. Throws: ConfigError for a text that is not YAML.
std::vector<JobDifference> job_differences(std::span<const std::string> jobs);

}  // namespace lancet::page
