#include "number_line.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lancet/runtime/send.h"
#include "number_tables.h"

namespace lancet {
namespace {

/// Codes of a table in the order of their numbers; of two codes for one number the first.
std::vector<uint8_t> codes_in_order(const std::array<float, 16>& table) {
  std::vector<uint8_t> codes(table.size());
  std::iota(codes.begin(), codes.end(), uint8_t{0});
  std::stable_sort(codes.begin(), codes.end(), [&](uint8_t a, uint8_t b) { return table[a] < table[b]; });
  codes.erase(std::unique(codes.begin(), codes.end(), [&](uint8_t a, uint8_t b) { return table[a] == table[b]; }),
              codes.end());
  return codes;
}

}  // namespace

NumberLine NumberLine::table(const std::array<float, 16>& numbers, at::Device device) {
  NumberLine line;
  line.kind_ = Kind::kTable;
  const std::vector<uint8_t> codes = codes_in_order(numbers);
  std::vector<float> borders;
  for (size_t i = 0; i + 1 < codes.size(); ++i) borders.push_back((numbers[codes[i]] + numbers[codes[i + 1]]) / 2);
  line.table_ = sent_to(device, torch::tensor(std::vector<float>(numbers.begin(), numbers.end())));
  line.borders_ = sent_to(device, torch::tensor(borders));
  line.code_of_place_ = sent_to(device, torch::tensor(codes));
  return line;
}

NumberLine NumberLine::float8(at::ScalarType type) {
  NumberLine line;
  line.kind_ = Kind::kFloat8;
  line.type_ = type;
  line.reach_ = line.largest_number_ = kLargestFloat8;
  return line;
}

NumberLine NumberLine::float4(at::Device device) {
  NumberLine line;
  line.kind_ = Kind::kFloat4;
  line.reach_ = line.largest_number_ = kLargestFloat4;
  std::vector<float> borders;  // of magnitudes, whose codes are their places
  for (size_t code = 0; code < 7; ++code) {
    const float border = (kFloat4Numbers[code] + kFloat4Numbers[code + 1]) / 2;
    borders.push_back(code % 2 == 0 ? border : std::nextafter(border, 0.0F));  // of two that are as near the even code
  }
  line.table_ = sent_to(device, torch::tensor(std::vector<float>(kFloat4Numbers.begin(), kFloat4Numbers.end())));
  line.borders_ = sent_to(device, torch::tensor(borders));
  return line;
}

NumberLine NumberLine::whole(const MatrixCode& code, at::ScalarType type) {
  NumberLine line;
  line.type_ = type;
  line.half_ = int64_t{1} << (code.bits - 1);
  line.largest_code_ = 2 * line.half_ - 1;
  line.reach_ = static_cast<double>(line.largest_code_) / 2;
  line.largest_number_ =
      static_cast<double>(code.symmetric || code.zeros == ZeroPoints::kNone ? line.half_ : line.largest_code_);
  if (code.zeros == ZeroPoints::kStoredLessOne) line.least_zero_ = 1;
  return line;
}

NumberLine NumberLine::by_largest() {
  NumberLine line;
  line.factor_ = kInt8Factor;
  line.least_code_ = 1;
  line.largest_number_ = 127;
  return line;
}

LineScales LineScales::of_column(int64_t i) const {
  const auto own = [&](const Tensor& values) {
    return values.defined() ? values.narrow(0, values.size(0) == 1 ? 0 : i, 1) : Tensor();
  };
  return {own(scales), own(zeros)};
}

Tensor NumberLine::whole_codes(const Tensor& numbers, const LineScales& at) const {
  // Of zeros the scale may be 0. bitsandbytes multiplies by its inverse.
  const Tensor scales = at.scales.masked_fill(at.scales.eq(0), 1);
  Tensor places = factor_ != 1 ? numbers * (127.0 / scales) : numbers / scales;
  places.round_();
  if (at.zeros.defined())
    places.add_(at.zeros);
  else
    places.add_(half_);
  return places.clamp_(least_code_, largest_code_).to(at::kByte);
}

Tensor NumberLine::float4_codes(const Tensor& numbers, const LineScales& at) const {
  constexpr int64_t kSign = 8;
  const Tensor scaled = numbers / at.scales;
  const Tensor codes = at::bucketize(scaled.abs(), borders_, /*out_int32=*/true).to(at::kByte);
  return codes.add_(scaled.signbit().to(at::kByte).mul_(kSign));
}

Tensor NumberLine::codes(const Tensor& numbers, const LineScales& at) const {
  switch (kind_) {
    case Kind::kWhole:
      return whole_codes(numbers, at);
    case Kind::kTable: {
      const Tensor divisors = at.scales.masked_fill(at.scales.abs().lt(kLeastDivisor), kLeastDivisor);
      const Tensor places =
          at::bucketize((numbers * divisors.reciprocal()).clamp_(-1, 1), borders_, /*out_int32=*/true);
      return code_of_place_.index_select(0, places.flatten()).view(places.sizes());
    }
    case Kind::kFloat8:
      return (numbers / at.scales.masked_fill(at.scales.eq(0), 1))
          .clamp_(-kLargestFloat8, kLargestFloat8)
          .to(at::kFloat8_e4m3fn)
          .view(at::kByte);
    case Kind::kFloat4:
      return float4_codes(numbers, at);
  }
  return {};
}

Tensor NumberLine::values(const Tensor& codes, const LineScales& at) const {
  const Tensor scales = at.scales.to(type_);
  switch (kind_) {
    case Kind::kWhole: {
      Tensor numbers = codes.to(type_);
      if (at.zeros.defined())
        numbers.sub_(at.zeros.to(type_));
      else
        numbers.sub_(half_);
      numbers.mul_(scales);
      return factor_ != 1 ? numbers.mul_(factor_) : numbers;
    }
    case Kind::kTable:
    case Kind::kFloat4:
      return table_.index_select(0, codes.flatten().to(at::kInt)).view(codes.sizes()).mul_(scales);
    case Kind::kFloat8:
      return codes.view(at::kFloat8_e4m3fn).to(type_).mul_(scales);
  }
  return {};
}

}  // namespace lancet
