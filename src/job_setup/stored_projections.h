// Null spaces that another tool computed take the place of the threshold by which lancet would make its own.
#pragma once

#include "lancet/core/config_tree.h"
#include "lancet/spec/job_spec.h"

namespace lancet {

/// Takes the threshold out of `editor` where `job` has stored projections; whether it has.
inline bool drop_threshold(ConfigTree& editor, const ConfigTree& job) {
  const ConfigTree* statistics = job.find(JobSpec::kStatistics.key);
  const ConfigTree* stored = statistics == nullptr ? nullptr : statistics->find(StatisticsSpec::kImportNullSpace.key);
  if (stored == nullptr || stored->kind == ConfigTree::Kind::kNull) return false;
  editor.erase(LayeredSpec::kNullSpaceBelow.key);
  return true;
}

}  // namespace lancet
