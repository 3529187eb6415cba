// Rows and keys that several families share.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "lancet/models/families.h"

namespace lancet {

using Rows = std::span<const WeightRow>;

/// Rows with the names of Llama's checkpoints.
extern const Rows kLlamaOutside;    ///< embedding, final norm, head
extern const Rows kLlamaAttention;  ///< separate projections and their biases
extern const Rows kLlamaMlp;        ///< gate, up, down and their biases
extern const Rows kHeadNorms;       ///< norms of queries and keys

/// Rows with the names of GPT-2's checkpoints, matrices stored [out, in].
extern const Rows kGptBeforeAttention;  ///< embedding, positions, final norm, head; the norm before attention
extern const Rows kGptAfterAttention;   ///< norm, up and down, with their biases

std::vector<WeightRow> rows_of(std::initializer_list<Rows> parts);

/// Llama's own, with `in_attention` after each layer's attention.
std::vector<WeightRow> llama_rows(Rows in_attention = {});

/// All of both.
std::vector<std::string_view> with_keys(std::vector<std::string_view> keys,
                                        std::initializer_list<std::string_view> more);

/// Llama's keys of sizes, norm, rotary embedding and activation.
std::vector<std::string_view> llama_keys(std::initializer_list<std::string_view> more = {});

/// Rotary tables that old exporters stored, recomputed here.
std::vector<std::string_view> llama_ignored_tensors();

/// Keys of GPT-2's and GPT-J's sizes, norm and activation; of their training; and masks that were stored.
std::vector<std::string_view> gpt_keys(std::initializer_list<std::string_view> more);
std::vector<std::string_view> gpt_harmless_keys(std::initializer_list<std::string_view> more);
std::vector<std::string_view> gpt_ignored_tensors();

}  // namespace lancet
