#include "lancet/quant_scheme/packed_spec.h"

#include <algorithm>
#include <array>

#include "lancet/core/strings.h"
#include "part_finder.h"

namespace lancet {
namespace {

constexpr std::string_view kWeight = ".weight";
/// Of rows and of columns: what is larger is no matrix, and products of these fit in 64 bits.
constexpr int64_t kLargestSize = int64_t{1} << 27;

using Find = void (*)(PartFinder&, PackedSpec&);

Find finder_of(MatrixPacking packing) {
  constexpr std::pair<MatrixPacking, Find> kFinders[] = {
      {MatrixPacking::kBitsAndBytes4, find_bitsandbytes_4},
      {MatrixPacking::kBitsAndBytes8, find_bitsandbytes_8},
      {MatrixPacking::kGptq, find_gptq},
      {MatrixPacking::kAwq, find_awq},
      {MatrixPacking::kFloat8, find_float8},
      {MatrixPacking::kCompressedPacked, find_compressed_packed},
      {MatrixPacking::kCompressedInt8, find_compressed_int8},
  };
  return std::find_if(std::begin(kFinders), std::end(kFinders), [&](const auto& row) { return row.first == packing; })
      ->second;
}

/// What shows that a weight is quantised.
struct Traces {
  bool packed_elsewhere = false;   ///< a tensor of another name has its numbers
  std::string tensor = {};         ///< that shows it
  std::optional<DType> type = {};  ///< of the tensor with the weight's own name
};

Traces traces_of(const Checkpoint& checkpoint, const std::string& name, std::string_view module) {
  for (const char* end : {".qweight", ".weight_packed"})
    if (const std::string tensor = cat(module, end); checkpoint.contains(tensor)) return {true, tensor, {}};
  for (const char* end : {".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4", ".absmax"})
    if (const std::string tensor = name + end; checkpoint.contains(tensor)) return {true, tensor, DType::kU8};
  if (checkpoint.contains(name)) return {false, name, checkpoint.info(name).dtype};
  return {};
}

bool is_stored_as_it_is(const Traces& traces) {
  if (traces.tensor.empty()) return true;  // it is missing, which is somebody else's to say
  constexpr std::array kPlain{DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
  return !traces.packed_elsewhere && std::find(kPlain.begin(), kPlain.end(), *traces.type) != kPlain.end();
}

/// Whether a method that packs like this leaves such traces.
bool fits(MatrixPacking packing, const Traces& traces) {
  const auto ends = [&](std::string_view end) { return traces.tensor.ends_with(end); };
  switch (packing) {
    case MatrixPacking::kBitsAndBytes4:
      return traces.packed_elsewhere && traces.type.has_value();
    case MatrixPacking::kBitsAndBytes8:
    case MatrixPacking::kCompressedInt8:
      return !traces.packed_elsewhere && traces.type == DType::kI8;
    case MatrixPacking::kGptq:
    case MatrixPacking::kAwq:
      return ends(".qweight");
    case MatrixPacking::kFloat8:
      return !traces.packed_elsewhere && traces.type == DType::kF8E4M3;
    case MatrixPacking::kCompressedPacked:
      return ends(".weight_packed");
  }
  return false;
}

std::string_view meaning_of(MatrixPacking packing) {
  switch (packing) {
    case MatrixPacking::kBitsAndBytes4:
      return "4 bits of bitsandbytes: .weight with .weight.absmax and .weight.quant_state";
    case MatrixPacking::kBitsAndBytes8:
      return "int8 of bitsandbytes: .weight of type I8 with .SCB";
    case MatrixPacking::kGptq:
      return "GPTQ: .qweight with .qzeros and .scales";
    case MatrixPacking::kAwq:
      return "AWQ: .qweight with .qzeros and .scales";
    case MatrixPacking::kFloat8:
      return "fp8: .weight of type F8_E4M3 with its scale";
    case MatrixPacking::kCompressedPacked:
      return "compressed-tensors' packed numbers: .weight_packed with .weight_scale";
    case MatrixPacking::kCompressedInt8:
      return "compressed-tensors' int8: .weight of type I8 with .weight_scale";
  }
  return "";
}

}  // namespace

const PackedPart* PackedSpec::part(PartRole role) const {
  const auto at = std::find_if(parts.begin(), parts.end(), [&](const PackedPart& part) { return part.role == role; });
  return at == parts.end() ? nullptr : &*at;
}

int64_t blocks_of(int64_t size, int64_t block) {
  return block == 0 || size == 0 ? std::min<int64_t>(size, 1) : (size - 1) / block + 1;
}

std::optional<PackedSpec> find_packed(const QuantScheme& scheme, const Checkpoint& checkpoint, const MatrixPlace& place,
                                      std::vector<std::string>& problems) {
  PackedSpec spec{.name = std::string(place.name), .rows = place.rows, .columns = place.columns};
  if (!place.name.ends_with(kWeight)) return std::nullopt;  // no method quantises anything else
  const std::string_view module = place.name.substr(0, place.name.size() - kWeight.size());
  const Traces traces = traces_of(checkpoint, spec.name, module);
  if (is_stored_as_it_is(traces)) return std::nullopt;
  PartFinder finder(checkpoint, spec, problems);
  const std::optional<MatrixCode> code = scheme.code_of_packed(module);
  if (!code) {
    finder.problem(traces.tensor, "is quantised, but nothing in quantization_config speaks of its module");
    return std::nullopt;
  }
  spec.code = *code;
  if (!fits(code->packing, traces)) {
    finder.problem(traces.tensor, cat(traces.type ? cat("type ", dtype_name(*traces.type), ", ") : std::string(),
                                      "expected ", meaning_of(code->packing), ", as quantization_config says"));
    return std::nullopt;
  }
  if (std::min(spec.rows, spec.columns) < 1 || std::max(spec.rows, spec.columns) > kLargestSize)
    finder.problem(spec.name, cat("expected a matrix of 1 to ", kLargestSize, " rows and columns, got ",
                                  shape_text(std::vector{spec.rows, spec.columns})));
  if (finder.is_whole()) finder_of(code->packing)(finder, spec);
  return finder.is_whole() ? std::optional(std::move(spec)) : std::nullopt;
}

std::vector<std::string> tensors_of_packing(const QuantScheme& scheme, const Checkpoint& checkpoint,
                                            const PackedSpec& spec) {
  std::vector<std::string> names;
  for (const PackedPart& part : spec.parts) names.push_back(part.tensor);
  for (std::string& name : scheme.aside_names(std::string_view(spec.name).substr(0, spec.name.size() - kWeight.size())))
    if (checkpoint.contains(name)) names.push_back(std::move(name));
  return names;
}

int64_t packed_bytes(const MatrixCode& code, int64_t rows, int64_t columns) {
  const int64_t codes = rows * blocks_of(columns * code.bits, 8);
  if (code.packing == MatrixPacking::kBitsAndBytes4) {
    const int64_t blocks = blocks_of(rows * columns, code.block.columns);
    constexpr int64_t kTableBytes = 256 * 2 * 4;
    return codes + kTableBytes + (code.nested ? blocks + 4 * blocks_of(blocks, 256) + 256 * 4 : 4 * blocks);
  }
  const int64_t scales = blocks_of(rows, code.block.rows) * blocks_of(columns, code.block.columns);
  const bool is_half = code.packing != MatrixPacking::kBitsAndBytes8 && code.packing != MatrixPacking::kFloat8;
  return codes + scales * (is_half ? 2 : 4) + (code.zeros == ZeroPoints::kNone ? 0 : scales) +
         (code.ordered ? 8 * columns : 0) + (code.bits == 4 ? 256 * 2 * 2 : 0);
}

}  // namespace lancet
