// Layouts of a matrix, as far as torch computes them: from a file's tensors to codes and scales, and back. A layout is
// a row of kMatrixCodecs; a format's layouts share a file here. What settings and names of tensors tell of a format is
// in the file of the same name in src/quant_formats/formats.
#pragma once

#include "numbers/assembly.h"
#include "numbers/new_parts.h"
#include "numbers/number_line.h"

namespace lancet {

struct MatrixCodec {
  MatrixPacking packing;

  /// Puts codes, scales and zero points of `assembly.part(...)` into `assembly.numbers()`, and has measured what shows
  /// whether they are in order. Waits for nothing; what it returns is called once that is known.
  SettleCodes (*assemble)(Assembly& assembly);

  // the way back

  /// Which numbers such a matrix has. `scale_type`: that the file has scales in. `device`: where numbers lie.
  NumberLine (*line)(const PackedSpec& spec, at::ScalarType scale_type, at::Device device);
  /// Turns codes [in, out] u8, as `line` gives them, into those of the file: its bytes in its order.
  Tensor (*store_codes)(const MatrixCode& code, const Tensor& codes);
  /// Turns the file's zero points into [groups, scale rows] u8. nullptr: no such matrix has any.
  Tensor (*load_zeros)(const PackedSpec& spec, const Tensor& stored) = nullptr;
  /// The inverse; the file's bytes in its order.
  Tensor (*store_zeros)(const MatrixCode& code, const Tensor& zeros) = nullptr;
  /// Adds the tensors of a matrix that no file has. Throws: by NewParts::refuse(), where the matrix does not fit.
  /// nullptr: no matrix is packed like this anew.
  void (*add_parts)(NewParts& parts) = nullptr;

  bool has_outputs_last = false;  ///< scales are [groups, rows] in files, not [rows, groups]
  bool has_exponents = false;     ///< scales are E8M0, in files as bytes without a type
  bool has_flat_blocks = false;   ///< scales are those of PackedSpec::block_size numbers of the flattened matrix

  /// Quantises a weight [out, in] of a floating type, with an even number of columns where codes have 4 bits, as the
  /// format's own program does: codes, scales and how to read them; of `largest` the factor that scales do not have.
  /// Numbers that are not finite make scales that are not. Waits for nothing. nullptr: quantise() does not offer it.
  PackedNumbers (*quantise)(const Tensor& weight, const MatrixCode& code) = nullptr;
};

extern const MatrixCodec kBitsAndBytes4Codec;
extern const MatrixCodec kBitsAndBytes8Codec;
extern const MatrixCodec kGptqCodec;
extern const MatrixCodec kAwqCodec;
extern const MatrixCodec kFloat8Codec;
extern const MatrixCodec kCompressedPackedCodec;
extern const MatrixCodec kCompressedInt8Codec;
extern const MatrixCodec kMxfp4Codec;
extern const MatrixCodec kGgufCodec;

inline constexpr const MatrixCodec* kMatrixCodecs[] = {
    &kBitsAndBytes4Codec,    &kBitsAndBytes8Codec,  &kGptqCodec,  &kAwqCodec,  &kFloat8Codec,
    &kCompressedPackedCodec, &kCompressedInt8Codec, &kMxfp4Codec, &kGgufCodec,
};

/// Throws: std::logic_error when there is no row of it.
const MatrixCodec& codec_of(MatrixPacking packing);

}  // namespace lancet
