// From the tensors of a file to a packed matrix: codes into rows, scales and zero points beside them, everything
// checked.
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/quant/packed_matrix.h"
#include "measured.h"
#include "number_tables.h"
#include "packed_numbers.h"
#include "words.h"

namespace lancet {
namespace {

class Assembly {
 public:
  Assembly(const PackedSpec& spec, std::span<const Tensor> parts) : spec_(spec), parts_(parts) {
    numbers_.name = spec.name;
    numbers_.rows = spec.rows;
    numbers_.columns = spec.columns;
    numbers_.bits = spec.code.bits;
    numbers_.block = spec.code.block;
  }

  PackedNumbers finish() {
    read_parts();
    const size_t scales = measure_scales();
    measured_.read();
    const double largest_code = settle_codes();
    settle_order();
    check_table();
    check_scales(scales, largest_code);
    if (!problems_.empty()) throw CheckpointError(join(problems_, "\n  "));
    return std::move(numbers_);
  }

 private:
  Tensor tensor(PartRole role) const {
    for (size_t i = 0; i < spec_.parts.size(); ++i)
      if (spec_.parts[i].role == role) return parts_[i];
    return {};
  }
  const std::string& name(PartRole role) const { return spec_.part(role)->tensor; }
  void problem(PartRole role, std::string_view what) { problems_.push_back(cat(name(role), ": ", what)); }

  void read_parts() {
    switch (spec_.code.packing) {
      case MatrixPacking::kBitsAndBytes4:
        return read_bitsandbytes_4();
      case MatrixPacking::kBitsAndBytes8:
        numbers_.codes = tensor(PartRole::kCodes).contiguous();
        numbers_.factor = kInt8Factor;
        return read_scales(at::kFloat);
      case MatrixPacking::kGptq:
      case MatrixPacking::kAwq:
        return read_words_of_outputs();
      case MatrixPacking::kFloat8:
        numbers_.codes = tensor(PartRole::kCodes).contiguous();
        read_scales(spec_.code.in_scale_type ? tensor(PartRole::kScales).scalar_type() : at::kFloat);
        not_a_number_ = measured_.not_a_number(numbers_.codes);
        return;
      case MatrixPacking::kCompressedPacked:
        return read_compressed_words();
      case MatrixPacking::kCompressedInt8:
        return read_compressed_bytes();
    }
  }

  /// Scales that are stored as they are used, [scale rows, scale columns].
  void read_scales(at::ScalarType type) {
    numbers_.type = type;
    numbers_.scales =
        tensor(PartRole::kScales)
            .to(type)
            .reshape({blocks_of(spec_.rows, spec_.code.block.rows), blocks_of(spec_.columns, spec_.code.block.columns)})
            .contiguous();
  }

  void read_bitsandbytes_4() {
    numbers_.codes = as_bytes(tensor(PartRole::kCodes).flatten()).view({spec_.rows, spec_.columns / 2});
    numbers_.kind = CodeKind::kPairs;
    numbers_.flat_block = spec_.block_size;
    numbers_.scales = tensor(PartRole::kScales).contiguous();
    if (spec_.code.nested)
      numbers_.nested = {.table = tensor(PartRole::kNestedTable).contiguous(),
                         .scales = tensor(PartRole::kNestedScales).contiguous(),
                         .block_size = spec_.nested_block_size,
                         .offset = static_cast<double>(static_cast<float>(spec_.nested_offset))};
    const std::array<float, 16>& known = numbers_of(spec_.table);
    const Tensor table = torch::tensor(std::vector<float>(known.begin(), known.end())).to(numbers_.codes.device());
    table_error_ = measured_.magnitude(tensor(PartRole::kTable) - table);
  }

  /// GPTQ's and AWQ's: words, zero points and scales run over the outputs.
  void read_words_of_outputs() {
    const bool is_awq = spec_.code.packing == MatrixPacking::kAwq;
    const Tensor words = tensor(PartRole::kCodes), zeros = tensor(PartRole::kZeros);
    numbers_.codes = is_awq ? rows_of_awq(words) : rows_of_words(words);
    numbers_.kind = code_kind();
    numbers_.scales = tensor(PartRole::kScales).transpose(0, 1).contiguous();
    numbers_.type = numbers_.scales.scalar_type();
    set_zeros((is_awq ? unpack_awq(zeros) : gptq_zeros(zeros)).transpose(0, 1).contiguous());
    if (const Tensor order = tensor(PartRole::kOrder); order.defined()) measure_order(order);
  }

  CodeKind code_kind() const {
    return numbers_.bits == 4 ? CodeKind::kPairs : numbers_.bits == 8 ? CodeKind::kBytes : CodeKind::kPlanes;
  }

  /// [groups, rows] u8.
  Tensor gptq_zeros(const Tensor& words) {
    const bool is_less_one = spec_.code.zeros == ZeroPoints::kStoredLessOne;
    if (is_less_one && numbers_.bits == 3 && spec_.code.symmetric) other_zeros_ = zeros_by_words(words);
    return unpack_gptq_zeros(words, numbers_.bits, spec_.rows, spec_.code.zeros);
  }

  /// As symmetric files of 3 bits are meant whose program took these words from theirs, and later adds them.
  Tensor zeros_by_words(const Tensor& words) {
    Tensor sums = words.clone();
    constexpr std::array<int32_t, 3> kWords{0x24924924, static_cast<int32_t>(0x92492492), 0x49249249};
    for (int64_t i = 0; i < 3; ++i) sums.unflatten(1, {-1, 3}).select(2, i).add_(kWords[static_cast<size_t>(i)]);
    const Tensor zeros = unpack_words(sums, 3, spec_.rows).transpose(0, 1).contiguous();
    other_least_ = measured_.least(zeros);
    other_most_ = measured_.most(zeros);
    return zeros;
  }

  void set_zeros(const Tensor& zeros) {
    numbers_.zeros = zeros;
    least_zero_ = measured_.least(zeros);
    most_zero_ = measured_.most(zeros);
  }

  void measure_order(const Tensor& order) {
    numbers_.order = order.to(at::kLong).contiguous();
    least_group_ = measured_.least(order);
    most_group_ = measured_.most(order);
    const int64_t group = spec_.code.block.columns == 0 ? spec_.columns : spec_.code.block.columns;
    const Tensor in_turn = torch::arange(spec_.columns, order.options()).div(group, "floor");
    in_turn_ = measured_.one(order.eq(in_turn).all());
  }

  void read_compressed_words() {
    const int64_t bits = numbers_.bits;
    numbers_.codes = as_bytes(tensor(PartRole::kCodes)).narrow(1, 0, spec_.columns * bits / 8).contiguous();
    numbers_.kind = code_kind();
    read_scales(tensor(PartRole::kScales).scalar_type());
    if (const Tensor order = tensor(PartRole::kOrder); order.defined()) measure_order(order);
    if (const Tensor zeros = tensor(PartRole::kZeros); zeros.defined())
      set_zeros(
          unpack_words(zeros.transpose(0, 1).contiguous(), bits, numbers_.scales.size(0)).transpose(0, 1).contiguous());
  }

  void read_compressed_bytes() {
    constexpr int64_t kSign = 0x80;  // of a whole number; without signs, differences stay the same
    numbers_.codes = tensor(PartRole::kCodes).contiguous();
    read_scales(tensor(PartRole::kScales).scalar_type());
    const Tensor zeros = tensor(PartRole::kZeros);
    if (!zeros.defined()) return;
    numbers_.codes = numbers_.codes.view(at::kByte).bitwise_xor(kSign);
    set_zeros(as_bytes(zeros.reshape(numbers_.scales.sizes())).bitwise_xor(kSign));
  }

  /// Makes the table of pairs. Zero points that are all the same become part of it, or a constant. Returns the largest
  /// magnitude before scales.
  double settle_codes() {
    if (spec_.code.packing == MatrixPacking::kBitsAndBytes4) {
      set_pairs(numbers_of(spec_.table), PairOrder::kHighFirst);
      return 1;
    }
    if (numbers_.codes.scalar_type() == at::kFloat8_e4m3fn) {
      if (measured_.value(not_a_number_) != 0)
        problem(PartRole::kCodes, "has numbers that are NaN: the file is damaged, download it again");
      return kLargestFloat8;
    }
    if (numbers_.codes.scalar_type() == at::kChar) return 128;
    choose_zeros();
    const double last = std::exp2(static_cast<double>(numbers_.bits)) - 1;
    double zero = numbers_.zeros.defined() ? 0 : std::exp2(static_cast<double>(numbers_.bits - 1));
    double largest = numbers_.zeros.defined() ? last : zero;
    if (numbers_.zeros.defined() && measured_.value(least_zero_) == measured_.value(most_zero_)) {
      zero = measured_.value(least_zero_);
      largest = std::max(zero, last - zero);
      numbers_.zeros.reset();
    }
    if (numbers_.kind == CodeKind::kPairs) {
      std::array<float, 16> values{};
      for (size_t code = 0; code < values.size(); ++code)
        values[code] = static_cast<float>(static_cast<double>(code) - zero);
      set_pairs(values, PairOrder::kLowFirst);
    } else {
      numbers_.zero = zero;
    }
    return largest;
  }

  /// Symmetric numbers of 3 bits have 4 for a zero point, and that tells which program wrote the file.
  void choose_zeros() {
    if (!other_zeros_.defined()) return;
    const auto is_half = [&](size_t least, size_t most) {
      return measured_.value(least) == 4 && measured_.value(most) == 4;
    };
    if (is_half(least_zero_, most_zero_)) return;
    if (!is_half(other_least_, other_most_))
      return problem(PartRole::kZeros, "expected zero points of 4 in a symmetric file of 3 bits, got others");
    numbers_.zeros = other_zeros_;
    least_zero_ = other_least_;
    most_zero_ = other_most_;
  }

  void set_pairs(std::span<const float> values, PairOrder order) {
    numbers_.pairs = pair_table(values, order, numbers_.type, numbers_.codes.device());
  }

  void settle_order() {
    if (!numbers_.order.defined()) return;
    const double groups = static_cast<double>(numbers_.scales.size(1));
    const double least = measured_.value(least_group_), most = measured_.value(most_group_);
    // compressed-tensors' way of saying that there is none
    if (spec_.code.packing == MatrixPacking::kCompressedPacked && least == -1) return numbers_.order.reset();
    if (least < 0 || most >= groups)
      problem(PartRole::kOrder, cat("groups ", least, " to ", most, ", expected 0 to ", groups - 1,
                                    ": the file is damaged, download it again"));
    if (measured_.value(in_turn_) != 0) numbers_.order.reset();
  }

  void check_table() {
    if (spec_.code.packing != MatrixPacking::kBitsAndBytes4) return;
    constexpr double kRounding = 1e-6;
    if (!(measured_.value(table_error_) <= kRounding))
      problem(PartRole::kTable, cat("expected the numbers of ", spec_.table == NumberTable::kNf4 ? "nf4" : "fp4",
                                    ", got others: a table of its own is not read"));
  }

  size_t measure_scales() {
    if (!spec_.code.nested) return measured_.magnitude(numbers_.scales);
    nested_table_ = measured_.magnitude(numbers_.nested.table);
    return measured_.magnitude(numbers_.nested.scales);
  }

  void check_scales(size_t place, double largest_code) {
    const PartRole role = spec_.code.nested ? PartRole::kNestedScales : PartRole::kScales;
    double scale = measured_.value(place);
    if (!std::isfinite(scale)) return problem(role, "has numbers that are not finite: the file is damaged");
    if (spec_.code.nested) {
      const double table = measured_.value(nested_table_);
      if (!std::isfinite(table)) return problem(PartRole::kNestedTable, "has numbers that are not finite");
      scale = scale * table + std::abs(spec_.nested_offset);
    }
    numbers_.largest = largest_code * scale;
    if (numbers_.largest > largest_of(numbers_.type))
      problem(role, cat("scales as large as ", scale, " make weights beyond ", largest_of(numbers_.type), ", the most ",
                        "that their type holds: the file is damaged, download it again"));
    numbers_.largest *= numbers_.factor;
  }

  const PackedSpec& spec_;
  std::span<const Tensor> parts_;
  PackedNumbers numbers_;
  Measured measured_;
  std::vector<std::string> problems_;
  Tensor other_zeros_;
  // places among what is measured
  size_t table_error_ = 0, not_a_number_ = 0, nested_table_ = 0, in_turn_ = 0;
  size_t least_zero_ = 0, most_zero_ = 0, other_least_ = 0, other_most_ = 0, least_group_ = 0, most_group_ = 0;
};

}  // namespace

PackedMatrix PackedMatrix::assemble(const PackedSpec& spec, std::span<const Tensor> parts) {
  const torch::NoGradGuard no_grad;
  return PackedMatrix(Assembly(spec, parts).finish());
}

}  // namespace lancet
