// Writes changes of weights as a LoRA adapter in the file format of llama.cpp.
// Source of names, orders and orientation: ggml-org/llama.cpp, convert_lora_to_gguf.py, conversion/*.py (permutation of
// queries and keys, order of fused ones, stacks of experts), src/llama-adapter.cpp (what is loaded: alpha, shapes);
// gguf 0.19, constants.py and tensor_mapping.py (names).
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "lancet/deltas/adapter.h"

namespace lancet {

/// Writes one file with general.type "adapter", adapter.type "lora", general.architecture, and adapter.lora.alpha =
/// rank, so that the scaling is 1. Each changed matrix has, under llama.cpp's name, `NAME.lora_a` [r, in] and
/// `NAME.lora_b` [out, r]. Their rows follow llama.cpp's file of the model: there, queries and keys of Llama, Mistral
/// and Mixtral have another order, and GPT-NeoX's fused ones are stored one after the other. Experts of a layer are
/// stacked, [experts, ., .]. Ranks, factors and `options` are those of write_adapter(), but base_model is not written.
///
/// Throws: as write_adapter(); ConfigError also for a family that llama.cpp does not have (GPT-J), and, each named, for
/// weights that cannot have a pair there (embeddings, positions, vectors, routers).
AdapterReport write_gguf_adapter(const std::filesystem::path& path, const ModelConfig& config,
                                 std::span<const WeightChanges> changes, const AdapterOptions& options);

}  // namespace lancet
