// What lies in a model's place beside what is read of it, and what lies there instead.
// Defined in checkpoint.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"

namespace lancet {

/// The text of a config.json, with bare floats as objects (strict_json.h). Throws: CheckpointError; a file that is
/// something else is named for what it is.
std::string config_text_of(const std::filesystem::path& file);

/// Names that the checkpoint's index has and no shard. Whether the model needs such a tensor is its family's to say.
std::vector<std::string> absent_names(const Checkpoint& checkpoint);

/// What is to be said of shards that lie beside a whole file, which is read, and have other numbers; empty: nothing.
std::string disagreement(const Checkpoint& checkpoint);

}  // namespace lancet
