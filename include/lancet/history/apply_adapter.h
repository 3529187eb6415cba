// `lancet apply` for adapters of other programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lancet/history/apply_job.h"

namespace lancet {

/// Returns whether a folder is a PEFT adapter, without a model and without edits of lancet beside it.
bool is_foreign_adapter(const std::filesystem::path& folder);

/// The effect of an adapter on one weight.
struct AdaptedWeight {
  std::string name = {};
  double norm = 0;     ///< Frobenius norm of the change
  double growth = 0;   ///< norm divided by the weight's; 0 for a weight of zeros
  int64_t rank = 0;    ///< rank of its factors; for a dense change, the smaller side
  double rounded = 0;  ///< ||stored - exact|| / ||change||
};

struct AppliedAdapter {
  std::vector<AdaptedWeight> weights = {};
  std::filesystem::path model = {};
  std::string format = {};  ///< "checkpoint", or "mixed" if weights were quantised
};

/// Runs `lancet apply` for an adapter of another program or of `lancet diff --out`: adds its change to the model, and
/// writes apply.json. `job.edits` is the adapter. `job.model` is the model; empty: the one that adapter_config.json
/// names. Nothing is measured, since there are no requests. Weights are changed one by one, in f64. The folder appears
/// complete or not at all. Throws: ConfigError, also for overrides, which have no meaning here; CheckpointError; as
/// read_adapter().
AppliedAdapter apply_adapter(const ApplyJob& job);

/// Returns the text of apply.json.
std::string to_json(const AppliedAdapter& applied, const ApplyJob& job);

}  // namespace lancet
