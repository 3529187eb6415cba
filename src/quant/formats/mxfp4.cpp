// MXFP4: numbers of E2M1, two a byte, the first in the low half; 32 neighbours in a row share an exponent. All is exact
// in bf16, which has E8M0's exponents.
// Source of scales and codes: OCP Microscaling Formats 1.0, 5.3 (E2M1, ties to even); the kernels that transformers
// quantises gpt-oss with, numerics_details/mxfp.py (downcast_to_mxfp_torch), take the exponent that no number is
// beyond.
#include <torch/types.h>

#include "codecs.h"
#include "numbers/number_tables.h"

namespace lancet {
namespace {

SettleCodes assemble_mxfp4(Assembly& assembly) {
  const PackedSpec& spec = assembly.spec();
  PackedNumbers& numbers = assembly.numbers();
  numbers.codes = assembly.part(PartRole::kCodes).reshape({spec.rows, spec.columns / 2}).contiguous();
  numbers.kind = CodeKind::kPairs;
  numbers.type = at::kBFloat16;
  numbers.scales = assembly.part(PartRole::kScales).contiguous().view(at::kFloat8_e8m0fnu);
  return [&assembly] {
    assembly.set_pairs(kFloat4Numbers, PairOrder::kLowFirst);
    return kLargestFloat4;
  };
}

NumberLine mxfp4_line(const PackedSpec&, at::ScalarType, at::Device device) { return NumberLine::float4(device); }

Tensor store_mxfp4(const MatrixCode&, const Tensor& codes) {
  const Tensor pairs = codes.transpose(0, 1).contiguous().view({-1, 2});
  return pairs_of(pairs.select(1, 0), pairs.select(1, 1));
}

}  // namespace

constexpr MatrixCodec kMxfp4Codec{.packing = MatrixPacking::kMxfp4,
                                  .assemble = assemble_mxfp4,
                                  .line = mxfp4_line,
                                  .store_codes = store_mxfp4,
                                  .has_exponents = true};

}  // namespace lancet
