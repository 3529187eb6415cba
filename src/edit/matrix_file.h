// A file of the statistics cache: one matrix in f64 and facts about it as text. It can be made again at any
// time, so whatever is wrong with it ends in the advice to remove it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "lancet/io/safetensors.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

enum class MatrixShape {
  kSquare,
  kWide  ///< any number of rows
};

struct MatrixKind {
  std::string_view format;  ///< raised when the meaning of a file changes
  std::string_view tensor;  ///< the matrix's name in the file
  std::string_view title;   ///< for messages: "covariance"
  MatrixShape shape = MatrixShape::kSquare;
};

struct MatrixFile {
  Tensor matrix;  ///< row-major, in the mapped file's memory: read only
  Metadata facts;
  std::filesystem::path path;
  MatrixKind kind;

  /// Throws: CheckpointError when the fact is missing or no number.
  double number(std::string_view fact) const;
};

/// `matrix`: row-major, on any device. Makes the folder. Throws: CheckpointError when the disk refuses.
void write_matrix(const std::filesystem::path& path, const MatrixKind& kind, const Tensor& matrix, Metadata facts);

/// Maps the file, of `size` columns; pages are read when they are used. A file that is replaced meanwhile stays as it
/// was. Throws: CheckpointError.
MatrixFile map_matrix(const std::filesystem::path& path, const MatrixKind& kind, int64_t size);

/// All digits of a number, for a fact.
std::string exact_text(double number);

}  // namespace lancet
