// `lancet apply` of an adapter that other programs made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lancet/history/apply_job.h"

namespace lancet {

/// Whether a folder is an adapter of PEFT, with no model and no edits of lancet's beside it.
bool is_foreign_adapter(const std::filesystem::path& folder);

/// What an adapter did to a weight.
struct AdaptedWeight {
  std::string name = {};
  double norm = 0;     ///< Frobenius norm of the change
  double growth = 0;   ///< norm divided by the weight's; 0 for a weight of zeros
  int64_t rank = 0;    ///< rank of its factors; the smaller side where it is dense
  double rounded = 0;  ///< ||stored - exact|| / ||change||
};

struct AppliedAdapter {
  std::vector<AdaptedWeight> weights = {};
  std::filesystem::path model = {};
  std::string format = {};  ///< "checkpoint", or "mixed" where weights were quantised
};

/// `lancet apply` of an adapter that other programs made, or `lancet diff --out`: the model with its change added, and
/// apply.json. `job.edits`: the adapter; `job.model`: empty: what its adapter_config.json names. Nothing is measured:
/// there are no requests. Weights are added to one by one, in f64. The folder appears complete or not at all. Throws:
/// ConfigError, also for overrides, which have no meaning here; CheckpointError; as read_adapter().
AppliedAdapter apply_adapter(const ApplyJob& job);

/// apply.json.
std::string to_json(const AppliedAdapter& applied, const ApplyJob& job);

}  // namespace lancet
