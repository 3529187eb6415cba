// Which tensors each shard of an export holds, and where their bytes come from.
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "lancet/checkpoint/checkpoint_export.h"

namespace lancet {

/// A tensor of a shard: the base's bytes, or the source's.
struct ExportedTensor {
  const TensorInfo* kept = nullptr;      ///< the base's tensor; null: it has none
  const TensorSource* source = nullptr;  ///< null: the base's bytes

  std::string_view name() const { return kept != nullptr ? kept->name : source->name; }
  DType dtype() const { return kept != nullptr ? kept->dtype : source->dtype; }
  const std::vector<int64_t>& shape() const { return kept != nullptr ? kept->shape : source->shape; }
  uint64_t size_bytes() const { return kept != nullptr ? kept->end - kept->begin : source->bytes.size(); }
};

struct ExportedShard {
  std::vector<ExportedTensor> tensors = {};  ///< tensors in the order of their bytes
  bool keeps_layout = true;                  ///< every tensor is where it is in the base
};

/// Views of a base and of changes, which outlive it.
struct ExportPlan {
  std::vector<ExportedShard> shards = {};  ///< one for each of the base's
  std::set<std::string_view> removed = {};
  std::map<std::string_view, const TensorExchange*> exchange_at = {};  ///< exchange that takes a removed tensor's place

  uint64_t tensor_bytes() const;
};

/// Throws: CheckpointError when the changes do not fit the base, or each other.
ExportPlan plan_export(const Checkpoint& base, const CheckpointChanges& changes);

}  // namespace lancet
