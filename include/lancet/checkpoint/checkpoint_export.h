// Writes a changed model folder: the base's files with some tensors' bytes, or some tensors altogether, exchanged.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"

namespace lancet {

/// Tensors that take the place of others: the packed parts of a matrix go, the matrix comes.
struct TensorExchange {
  std::vector<std::string> removed = {};  ///< tensors of the base, at least one; their order does not matter
  std::vector<TensorSource> added = {};   ///< tensors that come, at least one; names of removed tensors are free
};

/// What an export has otherwise than its base. Borrows all that it names.
struct CheckpointChanges {
  std::span<const TensorSource> replaced = {};  ///< other bytes; same name, dtype and shape as in the base
  std::span<const TensorExchange> exchanged = {};
  std::optional<std::string> config_text = {};  ///< text of config.json; nullopt: the base's
};

/// Writes a complete model folder into the existing, empty folder `target`: the base's shards under the same names with
/// `changes` made, their index, config, generation config and tokenizer files, nothing else; all of it synced.
/// Shards in which nothing is exchanged keep their layout. In the others tensors keep their order, and what is added
/// stands where the first of the removed stood (by shard, then by place). Where that leaves a tensor at no multiple of
/// its numbers' size, the shard's tensors are ordered by that size, largest first, as the reference writer orders them.
/// A shard that all its tensors have left is not written. With exchanges the index has their names and the new
/// `total_size`, its keys sorted, as transformers writes it. Untouched tensors' bytes go from file to file in the
/// kernel, from the files that were opened; shards by several threads. `__metadata__` survives; `format: pt` is added
/// when the base lacks it (transformers refuses a file without). Throws: CheckpointError, also for a base that is not
/// unchanged before and after; `target` may then hold part of the files (callers write into a staging folder). Changes
/// that do not fit the base or each other are found before anything is written.
void export_checkpoint(const Checkpoint& base, const CheckpointChanges& changes, const std::filesystem::path& target);

}  // namespace lancet
