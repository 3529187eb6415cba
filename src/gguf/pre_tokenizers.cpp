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

constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kFalcon =
    R"([{"type":"Punctuation","behavior":"Contiguous"},)"
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},)"
    R"({"type":"Digits","individual_digits":false},)"
    R"({"type":"Split","pattern":{"Regex":"[0-9][0-9][0-9]"},"behavior":"Isolated","invert":false}])";

// Letters with two cases, marks, Chinese, and what else DeepSeek cuts one after the other.
constexpr std::string_view kDeepseekLlmSteps =
    R"~([{"type":"Split","pattern":{"Regex":"[\r\n]"},"behavior":"Isolated","invert":false},)~"
    R"~({"type":"Split","pattern":{"Regex":"\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-)~"
    R"~(\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a)~"
    R"~(\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5)~"
    R"~(\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-)~"
    R"~(\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-)~"
    R"~(\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-)~"
    R"~(\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139)~"
    R"~(\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3)~"
    R"~(\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-)~"
    R"~(\ufb17\uff21-\uff3a\uff41-\uff5a\ud801\udc00-\ud801\udc4f\ud801\udcb0-\ud801\udcd3\ud801\udcd8-)~"
    R"~(\ud801\udcfb\ud803\udc80-\ud803\udcb2\ud803\udcc0-\ud803\udcf2\ud806\udca0-\ud806\udcdf\ud83a\udd00-)~"
    R"~(\ud83a\udd43]+"},"behavior":"Isolated","invert":false},)~"
    R"~({"type":"Split","pattern":{"Regex":"\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002])~"
    R"~(+"},"behavior":"Isolated","invert":false},)~"
    R"~({"type":"Split","pattern":{"Regex":"\\s+$"},"behavior":"Isolated","invert":false},)~"
    R"~({"type":"Split","pattern":{"Regex":"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"},"behavior":"Isolate)~"
    R"~(d","invert":false},)~"
    R"~({"type":"Digits","individual_digits":true},)~"
    R"~({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}])~";
constexpr std::string_view kDeepseekV3Steps =
    R"~([{"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},"behavior":"Isolated","invert":false},)~"
    R"~({"type":"Split","pattern":{"Regex":"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"},"behavior":"Isolate)~"
    R"~(d","invert":false},)~"
    R"~({"type":"Split","pattern":{"Regex":"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{)~"
    R"~(L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"},"behavior":")~"
    R"~(Isolated","invert":false},)~"
    R"~({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}])~";

constexpr PreTokenizer kPreTokenizers[] = {
    {.name = "gpt-2"},
    {.name = "olmo", .has_nfc = true},  // GPT-NeoX's
    {.name = "mpt", .has_nfc = true},
    {.name = "falcon", .steps = kFalcon},
    {.name = "deepseek-llm", .steps = kDeepseekLlmSteps},
    {.name = "deepseek-v3", .steps = kDeepseekV3Steps},
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
    {.name = "qwen35", .pattern = kQwen35, .has_nfc = true},
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
