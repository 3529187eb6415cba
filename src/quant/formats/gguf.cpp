// Blocks of a GGUF file stay as they are, and are decoded where somebody computes with them.
#include <torch/types.h>

#include "codecs.h"
#include "numbers/blocks.h"

namespace lancet {
namespace {

SettleCodes assemble_gguf(Assembly& assembly) {
  PackedNumbers& numbers = assembly.numbers();
  numbers.codes = assembly.part(PartRole::kCodes).contiguous();
  numbers.kind = CodeKind::kBlocks;
  numbers.block_type = assembly.spec().code.block_type;
  numbers.type = at::kFloat;
  return [&numbers] { return largest_of_blocks(numbers.block_type, numbers.codes, numbers.columns); };
}

}  // namespace

constexpr MatrixCodec kGgufCodec{.packing = MatrixPacking::kGguf,
                                 .assemble = assemble_gguf,
                                 .line = nullptr,  // gguf_blocks.h has the way back
                                 .store_codes = nullptr};

}  // namespace lancet
