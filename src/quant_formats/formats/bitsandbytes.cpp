// bitsandbytes. 4 bits: `weight` U8 [rows * columns / 2, 1] (or the same bytes as another type), with the first of two
// numbers in the high half; also `weight.absmax`, `weight.quant_map` and a record in JSON. int8: `weight` I8, `SCB`.
// Source of the settings: transformers, utils/quantization_config.py, BitsAndBytesConfig.
#include <cmath>

#include "formats.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

using Record = nlohmann::json;

/// A record is a line of a few hundred bytes.
constexpr uint64_t kLongestRecord = 1 << 16;
constexpr int64_t kLongestBlock = 1 << 16;

constexpr std::string_view kHarmlessOfBitsAndBytes[] = {
    "bnb_4bit_compute_dtype",  // type of products, not of the stored numbers
    "bnb_4bit_quant_storage",  // the types of the tensors already say it
    "llm_int8_enable_fp32_cpu_offload", "llm_int8_threshold", "_load_in_4bit", "_load_in_8bit"};

ModuleRules read_bitsandbytes(SchemeKeys& keys) {
  keys.harmless(kHarmlessOfBitsAndBytes);
  const bool in_4_bits = keys.flag("load_in_4bit", keys.flag("_load_in_4bit", false));
  const bool in_8_bits = keys.flag("load_in_8bit", keys.flag("_load_in_8bit", false));
  if (in_4_bits == in_8_bits)
    keys.refuse("load_in_4bit", "expected either load_in_4bit or load_in_8bit to be true, and not both");
  keys.one_of("bnb_4bit_quant_type", "fp4", {"fp4", "nf4"});
  if (keys.flag("llm_int8_has_fp16_weight", false))
    keys.refuse("llm_int8_has_fp16_weight", "expected false, got true: such weights are not stored as int8");
  MatrixCode code{.packing = MatrixPacking::kBitsAndBytes8};
  if (in_4_bits)
    code = {.packing = MatrixPacking::kBitsAndBytes4,
            .bits = 4,
            .block = {1, 64},
            .nested = keys.flag("bnb_4bit_use_double_quant", false)};
  else
    keys.flag("bnb_4bit_use_double_quant", false);
  ModuleRules rules;
  add_rules(keys, "llm_int8_skip_modules", RuleText::kPatternOrEnd, std::nullopt, rules);
  rules.usual = code;
  return rules;
}

void exclude_bitsandbytes(OrderedJson& settings, const ExcludedModules& excluded) {
  add_to_list(settings, "llm_int8_skip_modules", RuleText::kPatternOrEnd, kHeads, excluded);
}

/// Returns a power of two from the record; 0 and a problem if it is another number.
int64_t block_size_of(PartFinder& finder, const std::string& tensor, const Record& record, const char* key) {
  const auto at = record.find(key);
  if (at != record.end() && at->is_number_integer()) {
    const auto size = at->get<int64_t>();
    if (size >= 2 && size <= kLongestBlock && (size & (size - 1)) == 0) return size;
  }
  finder.problem(tensor, cat(key, ": expected a power of two from 2 to ", kLongestBlock, ", got ",
                             at == record.end() ? "nothing" : printable(at->dump())));
  return 0;
}

void check_record(PartFinder& finder, PackedSpec& spec, const std::string& tensor, const Record& record) {
  const std::string type = spec.table == NumberTable::kNf4 ? "nf4" : "fp4";
  if (const auto at = record.find("quant_type"); at == record.end() || *at != Record(type))
    finder.problem(tensor, cat("quant_type: expected ", type, ", as the tensor's name says"));
  if (const auto at = record.find("shape"); at == record.end() || *at != Record{spec.rows, spec.columns})
    finder.problem(tensor, cat("shape: expected ", shape_text(std::vector{spec.rows, spec.columns}),
                               " from config.json, got ", at == record.end() ? "nothing" : printable(at->dump())));
  spec.block_size = block_size_of(finder, tensor, record, "blocksize");
  spec.code.nested = record.contains("nested_offset");
  if (!spec.code.nested) return;
  spec.nested_block_size = block_size_of(finder, tensor, record, "nested_blocksize");
  const Record& offset = record["nested_offset"];
  spec.nested_offset = offset.is_number() ? offset.get<double>() : std::nan("");
  if (!std::isfinite(static_cast<float>(spec.nested_offset)))
    finder.problem(tensor, cat("nested_offset: expected a number, got ", printable(offset.dump())));
}

/// Reads from the record how the numbers are stored.
void read_record(PartFinder& finder, PackedSpec& spec) {
  const std::string nf4 = spec.name + ".quant_state.bitsandbytes__nf4";
  const std::string fp4 = spec.name + ".quant_state.bitsandbytes__fp4";
  const std::string tensor = finder.contains(fp4) ? fp4 : nf4;
  spec.table = tensor == fp4 ? NumberTable::kFp4 : NumberTable::kNf4;
  const TensorInfo* info = finder.need({PartRole::kRecord, tensor, {DType::kU8}, {}});
  if (info == nullptr) return;
  if (info->end - info->begin > kLongestRecord)
    return finder.problem(tensor, cat("expected a record of at most ", kLongestRecord, " bytes"));
  try {
    check_record(finder, spec, tensor, parse_json_object(finder.bytes(*info)));
  } catch (const JsonProblem& problem) {
    finder.problem(tensor, cat("expected a JSON object, got ", problem.what()));
  }
}

void find_scales(PartFinder& finder, PackedSpec& spec) {
  const int64_t blocks = blocks_of(spec.rows * spec.columns, spec.block_size);
  if (!spec.code.nested) {
    finder.need({PartRole::kScales, spec.name + ".absmax", {DType::kF32}, {{blocks}}});
    return;
  }
  finder.need({PartRole::kScales, spec.name + ".absmax", {DType::kU8}, {{blocks}}});
  finder.need({PartRole::kNestedScales,
               spec.name + ".nested_absmax",
               {DType::kF32},
               {{blocks_of(blocks, spec.nested_block_size)}}});
  finder.need({PartRole::kNestedTable, spec.name + ".nested_quant_map", {DType::kF32}, {{256}}});
}

void find_bitsandbytes_4(PartFinder& finder, PackedSpec& spec) {
  if (spec.columns % 2 != 0)
    return finder.problem(spec.name, cat("expected an even number of columns, got ", spec.columns));
  read_record(finder, spec);
  if (!finder.is_whole()) return;
  spec.code.block = {1, spec.block_size};
  const int64_t bytes = spec.rows * spec.columns / 2;
  std::vector<std::vector<int64_t>> shapes;
  for (const int64_t size : {1, 2, 4, 8})
    if (bytes % size == 0) shapes.push_back({bytes / size, 1});
  const TensorInfo* codes = finder.need({PartRole::kCodes,
                                         spec.name,
                                         {DType::kU8, DType::kI8, DType::kBF16, DType::kF16, DType::kF32, DType::kF64},
                                         shapes});
  if (codes != nullptr && static_cast<int64_t>(codes->end - codes->begin) != bytes)
    finder.problem(spec.name, cat(codes->end - codes->begin, " bytes, expected ", bytes));
  finder.need({PartRole::kTable, spec.name + ".quant_map", {DType::kF32}, {{16}}});
  find_scales(finder, spec);
}

void find_bitsandbytes_8(PartFinder& finder, PackedSpec& spec) {
  const std::string module = finder.module();
  finder.need({PartRole::kCodes, spec.name, {DType::kI8}, {{spec.rows, spec.columns}}});
  finder.need({PartRole::kScales, module + ".SCB", {DType::kF32}, {{spec.rows}, {spec.rows, 1}}});
  const std::string format = module + ".weight_format";
  const TensorInfo* info = finder.take({PartRole::kRecord, format, {DType::kU8}, {{}, {1}}});
  if (info != nullptr && finder.bytes(*info) != std::string(1, '\0'))
    finder.problem(
        format, "expected 0, which means rows; other orders are a GPU's own: save the model again with bitsandbytes");
}

int64_t bitsandbytes_4_bytes(const MatrixCode& code, int64_t rows, int64_t columns) {
  const int64_t codes = rows * blocks_of(columns * code.bits, 8);
  const int64_t blocks = blocks_of(rows * columns, code.block.columns);
  constexpr int64_t kTableBytes = 256 * 2 * 4;
  return codes + kTableBytes + (code.nested ? blocks + 4 * blocks_of(blocks, 256) + 256 * 4 : 4 * blocks);
}

constexpr std::string_view kOldKeysOfBitsAndBytes[] = {"load_in_8bit", "load_in_4bit"};
constexpr QuantMethod kBitsAndBytesMethods[] = {{.name = "bitsandbytes",
                                                 .read = read_bitsandbytes,
                                                 .exclude = exclude_bitsandbytes,
                                                 .implied_by = kOldKeysOfBitsAndBytes}};
constexpr std::string_view kMarksOf4Bits[] = {".weight.quant_state.bitsandbytes__nf4",
                                              ".weight.quant_state.bitsandbytes__fp4", ".weight.absmax"};
constexpr TensorLayout kBitsAndBytesLayouts[] = {
    {.packing = MatrixPacking::kBitsAndBytes4,
     .meaning = "4 bits of bitsandbytes: .weight with .weight.absmax and .weight.quant_state",
     .marks = kMarksOf4Bits,
     .type = DType::kU8,
     .find = find_bitsandbytes_4,
     .bytes = bitsandbytes_4_bytes},
    {.packing = MatrixPacking::kBitsAndBytes8,
     .meaning = "int8 of bitsandbytes: .weight of type I8 with .SCB",
     .type = DType::kI8,
     .find = find_bitsandbytes_8,
     .bytes = bytes_with_float_scales}};

}  // namespace

constexpr QuantFormat kBitsAndBytesFormat{.methods = kBitsAndBytesMethods, .layouts = kBitsAndBytesLayouts};

}  // namespace lancet
