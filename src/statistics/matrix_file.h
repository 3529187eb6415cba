// A file of the statistics cache: one matrix in f64 and facts about it as text. It can be made again at any
// time, so one that is damaged is named and made again. Defined in statistics_store.cpp.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/checkpoint/sealed_file.h"
#include "lancet/models/model_config.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Fact of a file: how many tokens its covariance is of.
inline constexpr const char* kTokensFact = "tokens";

/// Sizes of second moments: [F, F], or of experts [E, W, W].
std::vector<int64_t> moment_sizes(KeyShape keys);

enum class MatrixShape {
  kSymmetric,  ///< square: half of it is stored, row by row, each from the diagonal on
  kLower,      ///< square, zero above the diagonal: only the rest is stored, column by column
  kWide        ///< any number of rows; of experts a square for each
};

struct MatrixKind {
  SealedFormat format;
  std::string_view tensor;  ///< the matrix's name in the file
  std::string_view title;   ///< name for messages: "covariance"
  MatrixShape shape;
};

/// The file's header.
class MatrixFile {
 public:
  /// Opens a matrix for keys of this shape: of F columns, or of experts [E, W, W]. Throws: CheckpointError when the
  /// file is none of this kind, or had another name.
  static MatrixFile open(const std::filesystem::path& path, const MatrixKind& kind, KeyShape keys);

  /// Throws: CheckpointError when the fact is missing or no number.
  double number(const std::string& fact) const;
  /// Loads the matrix on the host, in memory of its own; checked: kLower column-major, the others row-major.
  /// Throws: CheckpointError.
  Tensor load() const;
  /// Returns the bytes that load() takes.
  int64_t bytes() const;
  /// Reads all of it, and keeps nothing. Throws: CheckpointError.
  void check() const;

 private:
  MatrixFile(SealedFile file, const MatrixKind& kind, KeyShape keys)
      : file_(std::move(file)), kind_(kind), keys_(keys) {}

  SealedFile file_;
  MatrixKind kind_;
  KeyShape keys_;
};

/// Whether the file is there and `check` finds it whole. One that is not is named in a warning: whoever asks makes it
/// again.
bool is_whole(const std::filesystem::path& path, const std::function<void()>& check);
/// Whether it is there and whole, by reading all of it.
bool has_matrix(const std::filesystem::path& path, const MatrixKind& kind, KeyShape keys);

/// `matrix`: row-major, or column-major of kLower; on any device; of experts [E, W, W]. The memory of one on the host
/// that is no kWide is used up. Makes the folder. Throws: CheckpointError when the disk refuses.
void write_matrix(const std::filesystem::path& path, const MatrixKind& kind, const Tensor& matrix, Metadata facts);

/// All digits of a number, for a fact.
std::string exact_text(double number);

}  // namespace lancet
