// Changes of weights as a LoRA adapter in the file format of llama.cpp.
// Source of names, orders and orientation: ggml-org/llama.cpp, convert_lora_to_gguf.py, conversion/*.py (permutation of
// queries and keys, order of fused ones, stacks of experts), src/llama-adapter.cpp (what is loaded: alpha, shapes);
// gguf 0.19, constants.py and tensor_mapping.py (names).
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "lancet/deltas/adapter.h"

namespace lancet {

/// One file: general.type "adapter", adapter.type "lora", adapter.lora.alpha = rank, so that scaling is 1, and
/// general.architecture. For each changed matrix, by llama.cpp's name of it, `NAME.lora_a` [r, in] and `NAME.lora_b`
/// [out, r], in the rows that its file of the model has: queries and keys of Llama, Mistral and Mixtral are in another
/// order there, and GPT-NeoX's fused ones lie one after the other. Experts of a layer are stacked, [experts, ., .].
/// Ranks, factors and `options` are write_adapter()'s; base_model is not written.
///
/// Throws: as write_adapter(); ConfigError also for a family that llama.cpp does not have (GPT-J), and, each named, for
/// weights that have no pair there (embeddings, positions, vectors, routers).
AdapterReport write_gguf_adapter(const std::filesystem::path& path, const ModelConfig& config,
                                 std::span<const WeightChanges> changes, const AdapterOptions& options);

}  // namespace lancet
