#include "job_differences.h"

#include <algorithm>
#include <map>

#include "lancet/core/config_tree.h"
#include "lancet/core/strings.h"

namespace lancet::page {
namespace {

using Leaves = std::vector<std::pair<std::string, std::string>>;

void collect(const ConfigTree& tree, const std::string& prefix, Leaves& leaves) {
  for (const auto& [key, value] : tree.entries) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    if (path == "output" || path == "statistics.cache" || path == "compare") continue;
    if (value.kind == ConfigTree::Kind::kMap)
      collect(value, path, leaves);
    else
      leaves.emplace_back(path, to_line(value));
  }
}

}  // namespace

std::vector<JobDifference> job_differences(std::span<const std::string> jobs) {
  std::vector<JobDifference> all;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].empty()) continue;
    Leaves leaves;
    collect(parse_config(jobs[i], "job.yaml"), "", leaves);
    for (const auto& [key, text] : leaves) {
      const auto [found, is_new] = places.emplace(key, all.size());
      if (is_new) all.push_back({key, std::vector<std::string>(jobs.size())});
      all[found->second].values[i] = text;
    }
  }
  std::erase_if(all, [&](const JobDifference& difference) {
    std::vector<std::string> known;
    for (size_t i = 0; i < jobs.size(); ++i)
      if (!jobs[i].empty()) known.push_back(difference.values[i]);
    return std::adjacent_find(known.begin(), known.end(), std::not_equal_to<>()) == known.end();
  });
  return all;
}

}  // namespace lancet::page
