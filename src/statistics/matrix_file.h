// A file of the statistics cache: one matrix in f64, and facts about it as text. It can be computed again at any time,
// so a damaged file is reported and replaced. Defined in statistics_store.cpp.
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

/// The fact that says from how many tokens a covariance was computed.
inline constexpr const char* kTokensFact = "tokens";

/// Returns the sizes of second moments: [F, F], or [E, W, W] for layers with experts.
std::vector<int64_t> moment_sizes(KeyShape keys);

enum class MatrixShape {
  kSymmetric,  ///< square: one half is stored, row by row, each row from the diagonal on
  kLower,      ///< square, zero above the diagonal: only the rest is stored, column by column
  kWide        ///< any number of rows; with experts a square matrix for each
};

struct MatrixKind {
  SealedFormat format;
  std::string_view tensor;  ///< the matrix's name in the file
  std::string_view title;   ///< name for messages: "covariance"
  MatrixShape shape;
};

/// A file whose header was read.
class MatrixFile {
 public:
  /// Opens a matrix for keys of this shape: with F columns, or [E, W, W] for layers with experts. Throws:
  /// CheckpointError if the file is of another kind, or was renamed.
  static MatrixFile open(const std::filesystem::path& path, const MatrixKind& kind, KeyShape keys);

  /// Returns a fact as a number. Throws: CheckpointError if the fact is missing or not a number.
  double number(const std::string& fact) const;
  /// Loads the matrix on the host into its own memory, and checks it. kLower is column-major, the others row-major.
  /// Throws: CheckpointError.
  Tensor load() const;
  /// Returns the bytes that load() takes.
  int64_t bytes() const;
  /// Reads and checks the whole file without keeping it. Throws: CheckpointError.
  void check() const;

 private:
  MatrixFile(SealedFile file, const MatrixKind& kind, KeyShape keys)
      : file_(std::move(file)), kind_(kind), keys_(keys) {}

  SealedFile file_;
  MatrixKind kind_;
  KeyShape keys_;
};

/// Whether the file exists and `check` does not throw. If the file exists but is damaged, a warning names it, and the
/// caller computes it again.
bool is_whole(const std::filesystem::path& path, const std::function<void()>& check);
/// Whether the file exists and is whole. Reads all of it.
bool has_matrix(const std::filesystem::path& path, const MatrixKind& kind, KeyShape keys);

/// Writes a matrix and makes its folder. `matrix`: on any device, row-major, but column-major for kLower; [E, W, W] for
/// layers with experts. The memory of a host matrix is overwritten unless its shape is kWide. Throws: CheckpointError
/// if the disk refuses.
void write_matrix(const std::filesystem::path& path, const MatrixKind& kind, const Tensor& matrix, Metadata facts);

/// Returns a number with all its digits, for a fact.
std::string exact_text(double number);

}  // namespace lancet
