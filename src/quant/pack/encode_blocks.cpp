#include <ATen/Parallel.h>
#include <torch/types.h>

#include <vector>

#include "blocks/encoders.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/quant/gguf_blocks.h"
#include "lancet/runtime/devices.h"
#include "numbers/blocks.h"

namespace lancet {
namespace {

const BlockEncoder* encoder_of(const GgufType& type) {
  for (const auto& encoders : {short_block_encoders(), long_block_encoders()})
    for (const BlockEncoder& encoder : encoders)
      if (encoder.type == type.name) return &encoder;
  return nullptr;
}

}  // namespace

bool can_encode(const GgufType& type) { return type.is_plain() || encoder_of(type) != nullptr; }

std::string encodable_types() {
  std::vector<std::string> names;
  for (const GgufType& type : gguf_types())
    if (can_encode(type)) names.emplace_back(type.name);
  return join(names);
}

Tensor encode_blocks(const Tensor& weight, const GgufType& type, const std::string& name) {
  const torch::NoGradGuard no_grad;
  if (!can_encode(type) || weight.size(1) % type.block_numbers != 0)
    throw CheckpointError(cat(name, ": expected rows of whole blocks of one of ", encodable_types(), ", got ",
                              type.name, " and rows of ", weight.size(1)));
  const Tensor numbers = weight.to(Placement::host(), at::kFloat).contiguous();
  if (!numbers.isfinite().all().item<bool>())
    throw NumericError(cat(name, ": expected finite numbers, got others: the edit damaged it"));
  Tensor bytes;
  if (type.is_plain()) {
    bytes = weight.to(Placement::host()).to(to_scalar_type(*type.dtype)).contiguous().view(at::kByte);
  } else {
    const BlockEncoder& encoder = *encoder_of(type);
    const int64_t blocks = numbers.numel() / type.block_numbers;
    bytes = torch::empty({weight.size(0), weight.size(1) / type.block_numbers * type.block_bytes}, at::kByte);
    const float* const from = numbers.const_data_ptr<float>();
    uint8_t* const to = bytes.mutable_data_ptr<uint8_t>();
    at::parallel_for(0, blocks, 64, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        encoder.encode(from + block * type.block_numbers, to + block * type.block_bytes);
    });
  }
  if (!decode_rows_of(bytes, type).isfinite().all().item<bool>())
    throw NumericError(
        cat(name, ": expected numbers that ", type.name, " can hold, got larger ones: write it in another type"));
  return bytes;
}

Tensor decode_rows_of(const Tensor& bytes, const GgufType& type) {
  const torch::NoGradGuard no_grad;
  if (type.is_plain()) return bytes.view(to_scalar_type(*type.dtype)).to(at::kFloat);
  const Tensor out = torch::empty({bytes.size(0), bytes.size(1) / type.block_bytes * type.block_numbers}, at::kFloat);
  decode_blocks(type.number, bytes, out);
  return out;
}

}  // namespace lancet
