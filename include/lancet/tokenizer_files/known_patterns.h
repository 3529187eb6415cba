// Split patterns that no file says: those that a component or a tokenizer's class stands for.
// Source: the published tokenizers of these models.
#pragma once

#include <string_view>

namespace lancet {

/// ByteLevel's own (use_regex), so GPT-2's, GPT-J's and GPT-NeoX's.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Pattern of Qwen2, 2.5 and 3: Llama 3's, but for single digits.
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace lancet
