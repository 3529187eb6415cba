#include "lancet/gguf/gguf_types.h"

#include <algorithm>
#include <vector>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr GgufType kGgufTypes[] = {
    {0, "F32", 1, 4, DType::kF32},  {1, "F16", 1, 2, DType::kF16}, {30, "BF16", 1, 2, DType::kBF16},
    {28, "F64", 1, 8, DType::kF64}, {2, "Q4_0", 32, 18, {}},       {3, "Q4_1", 32, 20, {}},
    {6, "Q5_0", 32, 22, {}},        {7, "Q5_1", 32, 24, {}},       {8, "Q8_0", 32, 34, {}},
    {10, "Q2_K", 256, 84, {}},      {11, "Q3_K", 256, 110, {}},    {12, "Q4_K", 256, 144, {}},
    {13, "Q5_K", 256, 176, {}},     {14, "Q6_K", 256, 210, {}},    {20, "IQ4_NL", 32, 18, {}},
    {23, "IQ4_XS", 256, 136, {}},   {34, "TQ1_0", 256, 54, {}},    {35, "TQ2_0", 256, 66, {}},
    {39, "MXFP4", 32, 17, {}},      {40, "NVFP4", 64, 36, {}},     {16, "IQ2_XXS", 256, 66, {}},
    {17, "IQ2_XS", 256, 74, {}},    {22, "IQ2_S", 256, 82, {}},    {18, "IQ3_XXS", 256, 98, {}},
    {21, "IQ3_S", 256, 110, {}},    {19, "IQ1_S", 256, 50, {}},    {29, "IQ1_M", 256, 56, {}},
};

/// Types that llama.cpp has and lancet does not read.
struct UnreadType {
  uint32_t number;
  std::string_view name;
};
constexpr UnreadType kUnreadTypes[] = {{9, "Q8_1"}, {15, "Q8_K"}, {24, "I8"}, {25, "I16"}, {26, "I32"}, {27, "I64"}};

}  // namespace

uint64_t GgufType::bytes_of(std::span<const int64_t> shape) const {
  uint64_t count = 1;
  for (const int64_t size : shape) count *= static_cast<uint64_t>(size);
  return count / static_cast<uint64_t>(block_numbers) * static_cast<uint64_t>(block_bytes);
}

std::span<const GgufType> gguf_types() { return kGgufTypes; }

const GgufType* find_gguf_type(uint32_t number) {
  const auto* found = std::ranges::find(kGgufTypes, number, &GgufType::number);
  return found == std::end(kGgufTypes) ? nullptr : found;
}

const GgufType* find_gguf_type(std::string_view name) {
  const auto* found = std::ranges::find(kGgufTypes, name, &GgufType::name);
  return found == std::end(kGgufTypes) ? nullptr : found;
}

std::string gguf_type_text(uint32_t number) {
  const auto* found = std::ranges::find(kUnreadTypes, number, &UnreadType::number);
  return found == std::end(kUnreadTypes) ? cat("the number ", number) : std::string(found->name);
}

std::string gguf_type_names() {
  std::vector<std::string> names;
  for (const GgufType& type : kGgufTypes) names.emplace_back(type.name);
  return join(names);
}

}  // namespace lancet
