// A matrix that stays packed on its device and is unpacked, wholly or some rows of it, whenever somebody computes with
// it. Unpacked numbers are those of the format's own reader, to the bit:
//   bitsandbytes             f32: (table or whole number) * scale; int8: that / 127, as a product with f32(1 / 127)
//   GPTQ, AWQ                in the scales' type (f16, as a rule): scale * (number - zero point)
//   fp8                      f32: number * scale
//   MXFP4                    bf16, in which it is exact: number * 2^exponent
//   compressed-tensors, all  in the scales' type: (number - zero point) * scale
// and after that rounded once to the type that was asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lancet/quant_formats/packed_spec.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

struct PackedNumbers;

class PackedMatrix {
 public:
  /// `parts`: for each of `spec.parts` its tensor, in the stored type and on one device, where the matrix is to be
  /// (undefined for records). Puts the numbers in rows, low bits first, where the file has them otherwise, and may keep
  /// parts that need not be changed. Takes, beside the parts and until it returns, at most twice their bytes. Waits for
  /// the device once.
  /// Throws: CheckpointError with every part that holds what no such matrix has: numbers that are not finite, groups
  /// that are not there, weights beyond what their type can hold.
  static PackedMatrix assemble(const PackedSpec& spec, std::span<const Tensor> parts);
  /// Takes numbers that are in order.
  explicit PackedMatrix(PackedNumbers numbers);

  /// [rows, columns] = [out, in] of the weight that it stands for.
  int64_t rows() const;
  int64_t columns() const;
  at::Device device() const;
  /// That it takes on its device.
  int64_t bytes() const;
  /// No weight is larger than this.
  double largest() const;
  PackedMatrix to(at::Device device) const;

  /// [rows, columns] of a floating type. Throws: NumericError when `dtype` cannot hold a weight as large as some may
  /// be. Nothing waits for the device.
  Tensor unpack(at::ScalarType dtype) const;
  /// Rows `begin` ... `begin + out.size(0)` into `out` [n, columns] of a floating type, on the same device. Throws: as
  /// above.
  void unpack_rows(int64_t begin, const Tensor& out) const;
  /// Returns whether read_rows() can be used: for blocks of a GGUF file on the host.
  bool can_read_rows() const;
  /// Decodes the rows `begin` to `begin + count` to f32, one after the other, in the calling thread: for products with
  /// few rows of activations, which read a matrix once.
  void read_rows(int64_t begin, int64_t count, float* rows) const;
  /// What unpacking a matrix, or rows of it, takes at its fullest beside its result: 12 bytes a number of those that
  /// are taken at a time, 2^18 on the host and 2^23 elsewhere, or a row.
  static int64_t scratch_bytes(int64_t rows, int64_t columns, at::Device device);

 private:
  std::shared_ptr<const PackedNumbers> numbers_;
};

}  // namespace lancet
