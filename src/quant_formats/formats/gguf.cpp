// GGUF: `X.weight.TYPE` U8 [rows, bytes of a row], the form in which a checkpoint has the tensors of a GGUF file:
// blocks one after another. gguf_types.h describes the blocks.
#include "formats.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_types.h"

namespace lancet {
namespace {

ModuleRules read_gguf(SchemeKeys&) {
  ModuleRules rules;
  rules.usual = {.packing = MatrixPacking::kGguf};
  return rules;
}

void exclude_gguf(OrderedJson&, const ExcludedModules&) {
  throw CheckpointError("a GGUF file says of each tensor itself how it is quantised: expected no list of modules");
}

void find_gguf_blocks(PartFinder& finder, PackedSpec& spec) {
  for (const GgufType& type : gguf_types()) {
    const std::string tensor = cat(spec.name, ".", type.name);
    if (type.is_plain() || !finder.contains(tensor)) continue;
    spec.code.block_type = type.number;
    if (spec.columns % type.block_numbers != 0)
      return finder.problem(tensor, cat("expected a multiple of ", type.block_numbers, " columns, got ", spec.columns));
    finder.need(
        {PartRole::kCodes, tensor, {DType::kU8}, {{spec.rows, spec.columns / type.block_numbers * type.block_bytes}}});
    return;
  }
}

/// Assumes 8 bits if the matrix's type is not known yet.
int64_t gguf_bytes(const MatrixCode& code, int64_t rows, int64_t columns) {
  const GgufType* type = find_gguf_type(code.block_type);
  if (type == nullptr || type->is_plain()) type = find_gguf_type("Q8_0");
  return rows * blocks_of(columns, type->block_numbers) * type->block_bytes;
}

constexpr QuantMethod kGgufMethods[] = {{.name = "gguf", .read = read_gguf, .exclude = exclude_gguf}};
constexpr std::string_view kGgufMarks[] = {
    ".weight.Q4_0",  ".weight.Q4_1",    ".weight.Q5_0",  ".weight.Q5_1",  ".weight.Q8_0",    ".weight.Q2_K",
    ".weight.Q3_K",  ".weight.Q4_K",    ".weight.Q5_K",  ".weight.Q6_K",  ".weight.IQ4_NL",  ".weight.IQ4_XS",
    ".weight.TQ1_0", ".weight.TQ2_0",   ".weight.MXFP4", ".weight.NVFP4", ".weight.IQ2_XXS", ".weight.IQ2_XS",
    ".weight.IQ2_S", ".weight.IQ3_XXS", ".weight.IQ3_S", ".weight.IQ1_S", ".weight.IQ1_M",
};
constexpr TensorLayout kGgufLayouts[] = {{.packing = MatrixPacking::kGguf,
                                          .meaning = "blocks of a GGUF file",
                                          .marks = kGgufMarks,
                                          .find = find_gguf_blocks,
                                          .bytes = gguf_bytes}};

}  // namespace

constexpr QuantFormat kGgufFormat{.methods = kGgufMethods, .layouts = kGgufLayouts};

}  // namespace lancet
