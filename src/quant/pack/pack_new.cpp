// Sources of names, types and shapes: GPTQModel, nn_modules/qlinear/torch.py; bitsandbytes, nn/modules.py
// (Linear8bitLt); compressed-tensors, compressors/; transformers, integrations/finegrained_fp8.py and fbgemm_fp8.py.
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/send.h"
#include "packing.h"

namespace lancet {
namespace {

constexpr std::string_view kEndOfWeight = ".weight";

/// The tensors of a matrix that has none yet: of the right types and shapes, and empty.
class NewParts {
 public:
  NewParts(const Tensor& weight, const MatrixCode& code, const std::string& name) : weight_(weight) {
    packed_.spec = {.name = name, .code = code};
    if (!name.ends_with(kEndOfWeight)) refuse(cat("a name that ends with ", kEndOfWeight));
    if (weight.dim() != 2 || weight.numel() == 0) refuse("a matrix with numbers");
    packed_.spec.rows = weight.size(0);
    packed_.spec.columns = weight.size(1);
    if (code.ordered) refuse("columns in the order of the model");
    groups_ = blocks_of(columns(), code.block.columns);
    if (code.block.columns > 0 && columns() % code.block.columns != 0)
      refuse(cat("columns in whole groups of ", code.block.columns));
    if (code.block.rows > 0 && rows() % code.block.rows != 0) refuse(cat("rows in whole groups of ", code.block.rows));
  }

  NewlyPacked finish() {
    switch (code().packing) {
      case MatrixPacking::kGptq:
        add_gptq();
        break;
      case MatrixPacking::kCompressedPacked:
        add_compressed_words();
        break;
      case MatrixPacking::kBitsAndBytes8:
        add_bitsandbytes_8();
        break;
      case MatrixPacking::kFloat8:
        add_float8();
        break;
      case MatrixPacking::kCompressedInt8:
        add_compressed_int8();
        break;
      case MatrixPacking::kBitsAndBytes4:
      case MatrixPacking::kAwq:
        refuse("a format that is made anew: GPTQ, int8 of bitsandbytes, fp8 or compressed-tensors");
    }
    for (const Tensor& part : packed_.parts) packed_.spec.stored_bytes += static_cast<int64_t>(part.nbytes());
    return std::move(packed_);
  }

 private:
  const MatrixCode& code() const { return packed_.spec.code; }
  int64_t rows() const { return packed_.spec.rows; }
  int64_t columns() const { return packed_.spec.columns; }

  [[noreturn]] void refuse(const std::string& expected) const {
    throw CheckpointError(cat(packed_.spec.name, ": expected ", expected, ", got ", shape_text(weight_.sizes().vec()),
                              " in groups of ", code().block.columns,
                              " columns: keep it in full precision or choose another format"));
  }

  void add(PartRole role, std::string_view end, at::ScalarType type, const std::vector<int64_t>& shape) {
    add(role, end, torch::zeros(shape, weight_.options().dtype(type)));
  }
  void add(PartRole role, std::string_view end, const Tensor& tensor) {
    const std::string& name = packed_.spec.name;
    packed_.spec.parts.push_back({role, cat(name.substr(0, name.size() - kEndOfWeight.size()), end)});
    packed_.parts.push_back(tensor);
  }

  void need_words(int64_t size, std::string_view what) const {
    if (code().bits != 4 && code().bits != 8) refuse("4 or 8 bits");
    if (size * code().bits % 32 != 0) refuse(cat("a multiple of ", 32 / code().bits, " ", what));
  }

  void add_gptq() {
    if (code().zeros == ZeroPoints::kNone || code().block.rows != 1) refuse("zero points, and scales of a row each");
    need_words(columns(), "columns");
    need_words(rows(), "rows");
    const int64_t group = columns() / groups_;
    add(PartRole::kCodes, ".qweight", at::kInt, {columns() * code().bits / 32, rows()});
    add(PartRole::kZeros, ".qzeros", at::kInt, {groups_, rows() * code().bits / 32});
    add(PartRole::kScales, ".scales", at::kHalf, {groups_, rows()});
    add(PartRole::kOrder, ".g_idx", torch::arange(columns(), weight_.options().dtype(at::kInt)).div_(group, "floor"));
  }

  void add_compressed_words() {
    need_words(columns(), "columns");
    const int64_t scale_rows = blocks_of(rows(), code().block.rows);
    add(PartRole::kCodes, ".weight_packed", at::kInt, {rows(), columns() * code().bits / 32});
    add(PartRole::kScales, ".weight_scale", at::kBFloat16, {scale_rows, groups_});
    if (code().zeros == ZeroPoints::kStored)
      add(PartRole::kZeros, ".weight_zero_point", at::kInt, {blocks_of(scale_rows * code().bits, 32), groups_});
    add(PartRole::kRecord, ".weight_shape", to_index({rows(), columns()}, weight_.device()));
  }

  void add_bitsandbytes_8() {
    add(PartRole::kCodes, ".weight", at::kChar, {rows(), columns()});
    add(PartRole::kScales, ".SCB", at::kFloat, {rows()});
    add(PartRole::kRecord, ".weight_format", at::kByte, {});  // 0: row by row
  }

  void add_float8() {
    const ScaleBlock& block = code().block;
    const bool is_of_blocks = block.rows > 1 && !code().in_scale_type;
    add(PartRole::kCodes, ".weight", at::kFloat8_e4m3fn, {rows(), columns()});
    add(PartRole::kScales, is_of_blocks ? ".weight_scale_inv" : ".weight_scale",
        code().in_scale_type ? at::kBFloat16 : at::kFloat, {blocks_of(rows(), block.rows), groups_});
  }

  void add_compressed_int8() {
    const std::vector<int64_t> scales{blocks_of(rows(), code().block.rows), groups_};
    add(PartRole::kCodes, ".weight", at::kChar, {rows(), columns()});
    add(PartRole::kScales, ".weight_scale", at::kBFloat16, scales);
    if (code().zeros == ZeroPoints::kStored) add(PartRole::kZeros, ".weight_zero_point", at::kChar, scales);
  }

  const Tensor& weight_;
  int64_t groups_ = 1;
  NewlyPacked packed_;
};

}  // namespace

NewlyPacked pack(const Tensor& weight, const MatrixCode& code, const std::string& name, const Tensor& importance_II,
                 const PackOptions& options) {
  const torch::NoGradGuard no_grad;
  NewlyPacked packed = NewParts(weight, code, name).finish();
  check_shapes(weight, packed.spec, importance_II);
  StoredParts parts(packed.spec, packed.parts, weight.device());
  fill_parts(parts, {weight, {}}, packed.spec, importance_II, options);
  packed.parts = all_parts(parts, packed.spec, packed.parts);
  return packed;
}

}  // namespace lancet
