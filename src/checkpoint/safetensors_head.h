// The part of a safetensors file before its tensors.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "lancet/checkpoint/safetensors.h"

namespace lancet {

/// Length and header of a file that holds the tensors in the order given, padded as write_safetensors says; reads no
/// tensor's bytes. `path` is for messages. Throws: CheckpointError as write_safetensors.
std::string safetensors_head(const std::filesystem::path& path, std::span<const TensorSource> tensors,
                             const Metadata& metadata);

}  // namespace lancet
