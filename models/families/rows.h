// Rows and keys that several families share.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "lancet/models/families.h"

namespace lancet {

using Rows = std::span<const WeightRow>;

/// As Llama's checkpoints name them.
extern const Rows kLlamaOutside;    ///< embedding, final norm, head
extern const Rows kLlamaAttention;  ///< separate projections and their biases
extern const Rows kLlamaMlp;        ///< gate, up, down and their biases
extern const WeightRow kLlamaAttnNorm;
extern const WeightRow kLlamaMlpNorm;

std::vector<WeightRow> rows_of(std::initializer_list<Rows> parts);

/// Llama's keys of sizes, norm, rotary embedding and activation.
std::vector<std::string_view> llama_keys(std::initializer_list<std::string_view> more = {});

/// Rotary tables that old exporters stored, recomputed here.
std::vector<std::string_view> llama_ignored_tensors();

}  // namespace lancet
