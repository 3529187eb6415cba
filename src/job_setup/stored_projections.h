// Null spaces that another tool computed replace the threshold with which lancet would compute its own.
#pragma once

#include "lancet/core/config_tree.h"
#include "lancet/spec/job_spec.h"

namespace lancet {

/// Removes the threshold from `editor` if `job` has stored projections. Returns whether it did.
inline bool drop_threshold(ConfigTree& editor, const ConfigTree& job) {
  const ConfigTree* statistics = job.find(JobSpec::kStatistics.key);
  const ConfigTree* stored = statistics == nullptr ? nullptr : statistics->find(StatisticsSpec::kImportNullSpace.key);
  if (stored == nullptr || stored->kind == ConfigTree::Kind::kNull) return false;
  editor.erase(LayeredSpec::kNullSpaceBelow.key);
  return true;
}

}  // namespace lancet
