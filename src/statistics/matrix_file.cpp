#include "matrix_file.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

/// The file's name is all that its matrix depends on.
constexpr const char* kNameFact = "name";

template <typename Read>
auto with_remedy(const Read& read) {
  try {
    return read();
  } catch (const CheckpointError& error) {
    throw CheckpointError(cat(error.what(), "; a job that begins to use it makes it again"));
  }
}

/// Numbers in front of column j of a packed triangle of n columns.
int64_t packed_begin(int64_t n, int64_t j) { return j * n - j * (j - 1) / 2; }

std::vector<int64_t> stored_shape(const TensorInfo& info, MatrixShape shape, int64_t size) {
  switch (shape) {
    case MatrixShape::kSquare:
      return {size, size};
    case MatrixShape::kLower:
      return {packed_begin(size, size)};
    case MatrixShape::kWide:
      return {info.shape.empty() ? 0 : info.shape.front(), size};
  }
  return {};
}

/// A column-major triangle with its columns one behind the other, each from its diagonal on, in the same memory.
Tensor packed(const Tensor& lower_FF) {
  const Tensor columns = lower_FF.t().to(Placement::host()).contiguous();
  const int64_t n = columns.size(0);
  double* const numbers = columns.mutable_data_ptr<double>();
  for (int64_t j = 1; j < n; ++j)
    std::memmove(numbers + packed_begin(n, j), numbers + j * n + j, static_cast<size_t>(n - j) * sizeof(double));
  return columns.flatten().narrow(0, 0, packed_begin(n, n));
}

/// Zeros whose pages do not exist before they are written to: above the diagonal they never are.
Tensor lazy_zeros(int64_t n) {
  void* const memory = std::calloc(static_cast<size_t>(n * n), sizeof(double));
  if (memory == nullptr) throw std::bad_alloc();
  return torch::from_blob(
      memory, {n, n}, [](void* owned) { std::free(owned); }, torch::TensorOptions(at::kDouble));
}

/// Puts a piece of a packed triangle in its place in `columns`, [n, n] by columns.
void unpack(const SealedFile::Piece& piece, int64_t n, double* columns) {
  const auto* from = reinterpret_cast<const double*>(piece.bytes.data());
  auto at = static_cast<int64_t>(piece.offset / sizeof(double));
  const int64_t end = at + static_cast<int64_t>(piece.bytes.size() / sizeof(double));
  // the last column that begins at or before `at`
  int64_t j = 0;
  for (int64_t step = int64_t{1} << 40; step > 0; step /= 2)
    if (j + step < n && packed_begin(n, j + step) <= at) j += step;
  for (; at < end; ++j) {
    const int64_t begin = packed_begin(n, j), count = std::min(end, packed_begin(n, j + 1)) - at;
    std::copy_n(from, count, columns + j * n + j + (at - begin));
    from += count;
    at += count;
  }
}

}  // namespace

MatrixFile MatrixFile::open(const std::filesystem::path& path, const MatrixKind& kind, int64_t size) {
  return with_remedy([&] {
    MatrixFile file(SealedFile::open(path, kind.format), kind, size);
    const std::vector<TensorInfo>& tensors = file.file_.tensors();
    if (tensors.size() != 1 || tensors[0].name != kind.tensor || tensors[0].dtype != DType::kF64 ||
        tensors[0].shape != stored_shape(tensors[0], kind.shape, size))
      throw CheckpointError(cat(path.string(), ": not a cached ", kind.title, " of size ", size));
    if (file.file_.fact(kNameFact) != path.stem())
      throw CheckpointError(
          cat(path.string(), ": written as '", file.file_.fact(kNameFact), "', for other statistics"));
    return file;
  });
}

double MatrixFile::number(const std::string& fact) const {
  return with_remedy([&] {
    const std::string& text = file_.fact(fact);
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end)
      throw CheckpointError(cat(file_.path().string(), ": '", fact, "': expected a number, got '", text, "'"));
    return value;
  });
}

Tensor MatrixFile::load() const {
  return with_remedy([&] {
    if (kind_.shape != MatrixShape::kLower) return load_tensors(file_).front().second;
    const Tensor columns = lazy_zeros(size_);
    file_.read([&](const SealedFile::Piece& piece) { unpack(piece, size_, columns.mutable_data_ptr<double>()); });
    return columns.t();
  });
}

void MatrixFile::check() const {
  with_remedy([&] { file_.check(); });
}

bool has_matrix(const std::filesystem::path& path, const MatrixKind& kind, int64_t size) {
  if (!std::filesystem::exists(path)) return false;
  try {
    MatrixFile::open(path, kind, size).check();
    return true;
  } catch (const CheckpointError& error) {
    log_warning(cat("statistics: ", error.what()));
    return false;
  }
}

std::string exact_text(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

void write_matrix(const std::filesystem::path& path, const MatrixKind& kind, const Tensor& matrix, Metadata facts) {
  std::error_code problem;
  std::filesystem::create_directories(path.parent_path(), problem);  // a failure shows when the file is written
  const Tensor stored = kind.shape == MatrixShape::kLower ? packed(matrix) : matrix;
  facts[kNameFact] = path.stem();
  write_tensors(path, kind.format, {{std::string(kind.tensor), stored}}, facts);
}

}  // namespace lancet
