#include <torch/types.h>

#include "formats/codecs.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "numbers/new_parts.h"
#include "packing.h"

namespace lancet {
namespace {

constexpr std::string_view kEndOfWeight = ".weight";

}  // namespace

NewParts::NewParts(const Tensor& weight, const MatrixCode& code, const std::string& name) : weight_(weight) {
  packed_.spec = {.name = name, .code = code};
  if (!name.ends_with(kEndOfWeight)) refuse(cat("a name that ends with ", kEndOfWeight));
  if (weight.dim() != 2 || weight.numel() == 0) refuse("a matrix with numbers");
  packed_.spec.rows = weight.size(0);
  packed_.spec.columns = weight.size(1);
  if (code.ordered) refuse("columns in the order of the model");
  if (code.block.columns > 0 && columns() % code.block.columns != 0)
    refuse(cat("columns in whole groups of ", code.block.columns));
  if (code.block.rows > 0 && rows() % code.block.rows != 0) refuse(cat("rows in whole groups of ", code.block.rows));
}

NewlyPacked NewParts::finish() {
  const MatrixCodec& codec = codec_of(code().packing);
  if (codec.add_parts == nullptr)
    refuse("a format that is made anew: GPTQ, int8 of bitsandbytes, fp8 or compressed-tensors");
  codec.add_parts(*this);
  for (const Tensor& part : packed_.parts) packed_.spec.stored_bytes += static_cast<int64_t>(part.nbytes());
  return std::move(packed_);
}

int64_t NewParts::groups() const { return blocks_of(columns(), code().block.columns); }

std::vector<int64_t> NewParts::scale_shape() const { return {blocks_of(rows(), code().block.rows), groups()}; }

at::Device NewParts::device() const { return weight_.device(); }

void NewParts::add(PartRole role, std::string_view end, at::ScalarType type, const std::vector<int64_t>& shape) {
  add(role, end, torch::zeros(shape, weight_.options().dtype(type)));
}

void NewParts::add(PartRole role, std::string_view end, const Tensor& tensor) {
  const std::string& name = packed_.spec.name;
  packed_.spec.parts.push_back({role, cat(name.substr(0, name.size() - kEndOfWeight.size()), end)});
  packed_.parts.push_back(tensor);
}

void NewParts::need_words(int64_t size, std::string_view what) const {
  if (code().bits != 4 && code().bits != 8) refuse("4 or 8 bits");
  if (size * code().bits % 32 != 0) refuse(cat("a multiple of ", 32 / code().bits, " ", what));
}

void NewParts::refuse(const std::string& expected) const {
  throw CheckpointError(cat(packed_.spec.name, ": expected ", expected, ", got ", shape_text(weight_.sizes().vec()),
                            " in groups of ", code().block.columns,
                            " columns: keep it in full precision or choose another format"));
}

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
