// The file format of llama.cpp: magic, version, metadata with types, then the tensors' places and their bytes. Written
// only; version 3, little endian. Source of the format: ggml-org/ggml, docs/gguf.md; gguf 0.19 (gguf_writer.py,
// constants.py) for the numbers of types.
#pragma once

#include <filesystem>
#include <span>

#include "lancet/checkpoint/safetensors.h"
#include "lancet/gguf/gguf_writing.h"

namespace lancet {

/// Metadata and tensors in the order given; each tensor's bytes begin at a multiple of 32 from the first. Dimensions
/// are those of TensorSource, the last one's numbers beside each other; the file has them in the other order. The file
/// appears complete or not at all.
/// Throws: CheckpointError when the disk refuses; std::logic_error for a type that is not F32, F16 or BF16, a name of
/// more than 63 bytes or that comes twice, more than 4 dimensions, and bytes that do not agree with the shape.
void write_gguf(const std::filesystem::path& path, std::span<const GgufEntry> metadata,
                std::span<const TensorSource> tensors);

}  // namespace lancet
