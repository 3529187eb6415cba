// What lies where a model was expected: each kind of file and folder is named for what it is, with the next step.
#pragma once

#include <filesystem>

namespace lancet {

/// A place that cannot be looked at is none.
bool is_folder(const std::filesystem::path& path);

/// Throws: CheckpointError where the file is known by its first bytes to be no file of a model folder: a GGUF, a
/// pointer of Git LFS. `expected`: what it should have been, "a safetensors file".
void refuse_other_file(const std::filesystem::path& file, const char* expected);

/// Where a config.json was expected: likewise, and files of weights. Throws: CheckpointError.
void refuse_no_config(const std::filesystem::path& file);

/// The place is no folder, or nothing of that name is there. Throws: CheckpointError.
[[noreturn]] void refuse_place(const std::filesystem::path& place);
/// The folder has no config.json. Throws: CheckpointError.
[[noreturn]] void refuse_folder(const std::filesystem::path& folder);
/// The folder has a config.json, and no safetensors that can be read. Throws: CheckpointError.
[[noreturn]] void refuse_weights(const std::filesystem::path& folder);

}  // namespace lancet
