// Split patterns that are not in any file, because a component or a tokenizer's class implies them.
// Source: the published tokenizers of these models.
#pragma once

#include <string_view>

namespace lancet {

/// The pattern of ByteLevel (use_regex), and so of GPT-2, GPT-J and GPT-NeoX.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// The pattern of Qwen2, 2.5 and 3: that of Llama 3, but with single digits.
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The pattern of Digits: Unicode's numbers (N), including those of Unicode 15 to 17, which older tables of PCRE2 lack.
inline constexpr std::string_view kDigitPattern =
    R"([\p{N}\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11DE0}-\x{11DE9})"
    R"(\x{11F50}-\x{11F59}\x{16130}-\x{16139}\x{16D70}-\x{16D79}\x{16FF4}-\x{16FF6}\x{1CCF0}-\x{1CCF9})"
    R"(\x{1D2C0}-\x{1D2D3}\x{1E4F0}-\x{1E4F9}\x{1E5F1}-\x{1E5FA}])";

/// The pattern of Punctuation and BertPreTokenizer: the punctuation of ASCII and of Unicode (P), but by the table of
/// Unicode 8, which the tokenizers library uses there. Later punctuation is excluded, and two characters that were
/// punctuation then are included.
inline constexpr std::string_view kPunctuationPattern =
    R"((?![\x{61D}\x{9FD}\x{A76}\x{C77}\x{C84}\x{1B4E}-\x{1B4F}\x{1B7D}-\x{1B7E}\x{1B7F}\x{2E43}-\x{2E4F})"
    R"(\x{2E52}-\x{2E5D}\x{10D6E}\x{10EAD}\x{10F55}-\x{10F59}\x{10F86}-\x{10F89}\x{113D4}-\x{113D5})"
    R"(\x{113D7}-\x{113D8}\x{1144B}-\x{1144F}\x{1145A}-\x{1145B}\x{1145D}\x{11660}-\x{1166C}\x{116B9})"
    R"(\x{1183B}\x{11944}-\x{11946}\x{119E2}\x{11A3F}-\x{11A46}\x{11A9A}-\x{11A9C}\x{11A9E}-\x{11AA2})"
    R"(\x{11B00}-\x{11B09}\x{11BE1}\x{11C41}-\x{11C45}\x{11C70}-\x{11C71}\x{11EF7}-\x{11EF8})"
    R"(\x{11F43}-\x{11F4F}\x{11FFF}\x{12FF1}-\x{12FF2}\x{16D6D}-\x{16D6F}\x{16E97}-\x{16E9A}\x{16FE2})"
    R"(\x{1E5FF}\x{1E95E}-\x{1E95F}])[\p{P}$+<=>\^`|~\x{166D}\x{111C9}])";

/// The pattern of WhitespaceSplit and BertPreTokenizer.
inline constexpr std::string_view kWhiteSpacePattern = R"(\s)";

/// The pattern of Whitespace: words, and what is neither word nor white space. Words consist of characters of Rust's
/// \w.
inline constexpr std::string_view kWordPattern =
    R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169})"
    R"(\x{1F170}-\x{1F189}]+|[^\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9})"
    R"(\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}\s]+)";

}  // namespace lancet
