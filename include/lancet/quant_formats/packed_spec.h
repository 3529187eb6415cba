// Where a quantised matrix lies in a checkpoint: the tensors that it consists of, checked against each other, and how
// many bytes they are. Of numbers only records are read here, never weights or scales.
// Sources of the layouts: bitsandbytes, functional.py (QuantState); GPTQModel, nn_modules/qlinear/torch.py; AutoAWQ,
// utils/packing_utils.py; transformers, integrations/finegrained_fp8.py and mxfp4.py; compressed-tensors, compressors/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lancet/quant_formats/matrix_code.h"

namespace lancet {

/// What a tensor is to its matrix.
enum class PartRole {
  kCodes,  ///< the packed numbers
  kScales,
  kZeros,         ///< zero points
  kOrder,         ///< the group of each column
  kTable,         ///< bitsandbytes: the 16 numbers
  kNestedScales,  ///< bitsandbytes: the scales of the scales, which are places in a table then
  kNestedTable,   ///< bitsandbytes: that table, of 256 numbers
  kRecord         ///< has been read, and is not needed any more
};

struct PackedPart {
  PartRole role = PartRole::kCodes;
  std::string tensor = {};  ///< its name
};

enum class NumberTable { kNf4, kFp4 };

/// Which numbers of its tensors a matrix has, where these are of several matrices: of one of them the rows `begin`,
/// `begin + step`, ...
struct TensorSlice {
  int64_t matrices = 0;  ///< how many there are, in the tensors' first dimension; 0: the tensors are the matrix's own
  int64_t matrix = 0;
  int64_t begin = 0;
  int64_t step = 1;

  bool is_whole() const { return matrices == 0; }
};

/// A quantised matrix [rows, columns] = [out, in] in a checkpoint.
struct PackedSpec {
  std::string name;  ///< name of the weight: "model.layers.3.mlp.down_proj.weight"
  int64_t rows = 0;
  int64_t columns = 0;
  MatrixCode code = {};
  std::vector<PackedPart> parts = {};
  // what bitsandbytes keeps beside the tensors
  NumberTable table = NumberTable::kNf4;
  int64_t block_size = 64;  ///< numbers with one scale, in the flattened matrix
  int64_t nested_block_size = 256;
  double nested_offset = 0;
  TensorSlice slice = {};  ///< what the matrix has of every part

  /// Bytes of all parts in the file, of a slice its share.
  int64_t stored_bytes = 0;
  /// The tensor with that role; nullptr: there is none.
  const PackedPart* part(PartRole role) const;
};

/// What PackedMatrix::bytes() will be of a matrix of which only the configuration is known; exact for f32 scales of
/// bitsandbytes, fp8 and f16 scales of GPTQ and AWQ, bf16 ones of compressed-tensors and the exponents of MXFP4.
int64_t packed_bytes(const MatrixCode& code, int64_t rows, int64_t columns);

/// How many scales lie in one direction: of `size` numbers, `block` each (0: all).
int64_t blocks_of(int64_t size, int64_t block);

}  // namespace lancet
