#include "lancet/core/dtype.h"

#include <gtest/gtest.h>

namespace lancet {
namespace {

TEST(DType, NamesAndSizesAreThoseOfSafetensors) {
  struct Row {
    DType dtype;
    const char* name;
    int64_t bytes;
  };
  // Source: the safetensors format's table of types.
  const Row rows[] = {{DType::kBool, "BOOL", 1},      {DType::kU8, "U8", 1},          {DType::kI8, "I8", 1},
                      {DType::kF8E5M2, "F8_E5M2", 1}, {DType::kF8E4M3, "F8_E4M3", 1}, {DType::kI16, "I16", 2},
                      {DType::kU16, "U16", 2},        {DType::kF16, "F16", 2},        {DType::kBF16, "BF16", 2},
                      {DType::kI32, "I32", 4},        {DType::kU32, "U32", 4},        {DType::kF32, "F32", 4},
                      {DType::kI64, "I64", 8},        {DType::kU64, "U64", 8},        {DType::kF64, "F64", 8}};
  for (const Row& row : rows) {
    EXPECT_EQ(dtype_name(row.dtype), row.name);
    EXPECT_EQ(bytes_per_element(row.dtype), row.bytes) << row.name;
    EXPECT_EQ(parse_dtype(row.name), row.dtype) << row.name;
  }
}

TEST(DType, UnknownNamesAreNone) {
  for (const char* name : {"", "f32", "F32 ", "F8", "C64", "float32"})
    EXPECT_FALSE(parse_dtype(name).has_value()) << name;
}

}  // namespace
}  // namespace lancet
