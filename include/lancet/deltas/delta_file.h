// Edits as data: the factors of every edited weight with where they came from.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "lancet/deltas/weight_update.h"

namespace lancet {

/// Where a delta came from.
struct DeltaProvenance {
  std::string base_hash;  ///< Checkpoint::content_hash of the unedited model
  std::string method;
  std::vector<std::string> request_ids;  ///< one per column of each low-rank delta
};

/// A sealed file: `NAME.left` [d_out, r] and `NAME.right` [r, d_in] for each edited weight NAME (`NAME.full` for a
/// dense change), f32; of weights that are stored [in, out] both are transposed, so that left @ right is added to what
/// is stored; facts: format lancet-delta-2, base_hash, method, requests (JSON list of ids, one per column). Throws:
/// CheckpointError when the disk refuses.
void write_delta(const std::filesystem::path& path, const ModelConfig& config,
                 std::span<const WeightTransaction::Entry> entries, const DeltaProvenance& provenance);

}  // namespace lancet
