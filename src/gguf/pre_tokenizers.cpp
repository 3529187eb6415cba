#include "pre_tokenizers.h"

#include <algorithm>
#include <vector>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                                     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
                                     R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr PreTokenizer kPreTokenizers[] = {
    {.name = "gpt-2"},
    {.name = "olmo"},
    {.name = "mpt"},
    {.name = "exaone4"},
    {.name = "smollm", .cuts_digits = true},
    {.name = "starcoder", .cuts_digits = true},
    {.name = "refact", .cuts_digits = true},
    {.name = "command-r", .cuts_digits = true, .has_nfc = true},
    {.name = "llama-bpe", .pattern = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "llama3", .pattern = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "llama-v3", .pattern = kLlama3, .ignores_merges = true, .adds_bos = true},
    {.name = "dbrx", .pattern = kLlama3},
    {.name = "smaug-bpe", .pattern = kLlama3},
    {.name = "glm4", .pattern = kLlama3},
    {.name = "chatglm-bpe", .pattern = kLlama3},
    {.name = "qwen2", .pattern = kQwen2, .has_nfc = true},
    {.name = "deepseek-r1-qwen", .pattern = kQwen2, .has_nfc = true},
    {.name = "stablelm2", .pattern = kQwen2},
    {.name = "tekken", .pattern = kTekken, .ignores_merges = true, .adds_bos = true},
    {.name = "gpt-4o", .pattern = kGpt4o},
};

}  // namespace

const PreTokenizer* find_pre_tokenizer_if(const std::function<bool(const PreTokenizer&)>& is_it) {
  const auto* found = std::ranges::find_if(kPreTokenizers, is_it);
  return found == std::end(kPreTokenizers) ? nullptr : found;
}

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  return find_pre_tokenizer_if([&](const PreTokenizer& each) { return each.name == name; });
}

std::string pre_tokenizer_names() {
  std::vector<std::string> names;
  for (const PreTokenizer& known : kPreTokenizers) names.emplace_back(known.name);
  return join(names);
}

}  // namespace lancet
