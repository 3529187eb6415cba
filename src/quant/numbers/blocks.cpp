#include "blocks.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "blocks/decode_tensors.h"
#include "blocks/decoders.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_types.h"
#include "lancet/runtime/devices.h"
#include "packed_numbers.h"

namespace lancet {
namespace {

const BlockDecoder& decoder_of(const GgufType& type) {
  for (const auto& decoders : {short_block_decoders(), long_block_decoders(), codebook_decoders()})
    for (const BlockDecoder& decoder : decoders)
      if (decoder.type == type.name) return decoder;
  throw std::logic_error(cat("blocks of ", type.name, " have no decoder"));
}

/// Both on the host.
void decode_on_host(uint32_t type_number, const Tensor& codes, const Tensor& out) {
  const GgufType& type = *find_gguf_type(type_number);
  const int64_t blocks = out.numel() / type.block_numbers;
  const Tensor bytes = codes.contiguous();
  const BlockBytes from = bytes.const_data_ptr<uint8_t>();
  float* const to = out.mutable_data_ptr<float>();
  constexpr int64_t kNumbersOfThread = 1 << 15;
  at::parallel_for(
      0, blocks, std::max<int64_t>(1, kNumbersOfThread / type.block_numbers), [&](int64_t begin, int64_t end) {
        decode_block_rows(type_number, from + begin * type.block_bytes,
                          {to + begin * type.block_numbers, static_cast<size_t>((end - begin) * type.block_numbers)});
      });
}

}  // namespace

void decode_blocks(uint32_t type, const Tensor& codes, const Tensor& out) {
  if (out.device() == Placement::host()) return decode_on_host(type, codes, out);
  const GgufType& known = *find_gguf_type(type);
  if (has_tensor_decoder(known.name))
    return decode_with_tensors(known.name, codes.reshape({-1, known.block_bytes}), out.view({-1, known.block_numbers}));
  const Tensor decoded = torch::empty(out.sizes(), torch::kFloat);
  decode_on_host(type, codes.to(Placement::host()), decoded);
  out.copy_(decoded);
}

void decode_block_rows(uint32_t type_number, const uint8_t* codes, std::span<float> out) {
  const GgufType& type = *find_gguf_type(type_number);
  const BlockDecoder& decoder = decoder_of(type);
  const int64_t blocks = std::ssize(out) / type.block_numbers;
  for (int64_t block = 0; block < blocks; ++block)
    decoder.decode(codes + block * type.block_bytes, out.data() + block * type.block_numbers);
}

double largest_of_blocks(uint32_t type, const Tensor& codes, int64_t columns) {
  const Tensor bytes = codes.to(Placement::host());
  const int64_t step = rows_at_a_time(columns, Placement::host());
  const Tensor place = torch::empty({std::min(step, bytes.size(0)), columns}, torch::kFloat);
  double largest = 0;
  for (int64_t begin = 0; begin < bytes.size(0); begin += step) {
    const Tensor some = place.narrow(0, 0, std::min(step, bytes.size(0) - begin));
    decode_on_host(type, bytes.narrow(0, begin, some.size(0)), some);
    const double own = some.abs().max().item<double>();
    if (!std::isfinite(own)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, own);
  }
  return largest;
}

}  // namespace lancet
