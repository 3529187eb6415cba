// How edits are exported as an adapter: flags of `lancet export adapter`, keywords of lancet.Session.export_adapter().
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct AdapterSpec {
  static constexpr std::string_view kFormatNames[] = {"peft", "gguf"};
  static constexpr ChoiceOption kFormat{
      {.key = "format", .meaning = "`peft` for PEFT and vLLM, or `gguf` for llama.cpp"}, kFormatNames};
  static constexpr std::string_view kDTypeNames[] = {"auto", "f32", "f16", "bf16"};
  static constexpr ChoiceOption kDType{
      {.key = "dtype", .meaning = "number type of the factors; `auto`: f16 for `gguf`, f32 for `peft`"}, kDTypeNames};
  static constexpr IntegerOption kRank{
      {.key = "rank", .meaning = "largest rank of the adapter; lancet shows how much of the edits this rank loses"},
      {.min = 1, .max = 512},
      512};
  static constexpr AnyOption kAll[] = {&kFormat, &kDType, &kRank};
};

}  // namespace lancet
