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
#include "lancet/core/parallel.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/gram.h"
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

/// Numbers before row j of a packed triangle of n rows.
int64_t packed_begin(int64_t n, int64_t j) { return j * n - j * (j - 1) / 2; }

std::vector<int64_t> stored_shape(const TensorInfo& info, MatrixShape shape, KeyShape keys) {
  std::vector<int64_t> expected = moment_sizes(keys);
  if (shape != MatrixShape::kWide) {
    expected.pop_back();
    expected.back() = packed_begin(keys.width, keys.width);
  } else if (keys.experts == 1) {
    expected.front() = info.shape.empty() ? 0 : info.shape.front();
  }
  return expected;
}

/// Packs a matrix on the host in its own memory.
void pack_in_place(double* matrices, int64_t n_matrices, int64_t n) {
  double* to = matrices;
  for (int64_t m = 0; m < n_matrices; ++m)
    for (int64_t i = 0; i < n; to += n - i, ++i)
      std::memmove(to, matrices + (m * n + i) * n + i, static_cast<size_t>(n - i) * sizeof(double));
}

/// Packs matrices [E, n, n] that lie elsewhere or otherwise, and takes them to the host some rows at a time.
Tensor pack_staged(const Tensor& matrices_Enn) {
  constexpr int64_t kStagedNumbers = int64_t{8} << 20;
  constexpr size_t kMostThreads = 8;
  const int64_t n = matrices_Enn.size(-1), size = packed_begin(n, n),
                step = std::clamp<int64_t>(kStagedNumbers / n, 1, n);
  const Tensor triangles = torch::empty({matrices_Enn.size(0), size}, torch::TensorOptions(at::kDouble));
  const Tensor staging = torch::empty({step * n}, torch::TensorOptions(at::kDouble));
  for (int64_t m = 0; m < matrices_Enn.size(0); ++m)
    for (int64_t begin = 0; begin < n; begin += step) {
      const int64_t count = std::min(step, n - begin), width = n - begin;
      const Tensor staged = staging.narrow(0, 0, count * width).view({count, width});
      staged.copy_(matrices_Enn[m].narrow(0, begin, count).narrow(1, begin, width));
      for_each_in_parallel(static_cast<size_t>(count), kMostThreads, [&](size_t row) {
        const auto i = static_cast<int64_t>(row);
        std::copy_n(staged.const_data_ptr<double>() + i * (width + 1), width - i,
                    triangles.mutable_data_ptr<double>() + m * size + packed_begin(n, begin + i));
      });
    }
  return triangles;
}

/// Returns the rows of matrices [n, n] or [E, n, n], each from its diagonal on, on the host: [size] or [E, size].
Tensor packed(const Tensor& rows) {
  const int64_t n = rows.size(-1), size = packed_begin(n, n);
  Tensor triangles = rows.view({-1, n, n});
  const int64_t n_matrices = triangles.size(0);
  if (rows.device() == Placement::host() && rows.is_contiguous()) {
    pack_in_place(rows.mutable_data_ptr<double>(), n_matrices, n);
    triangles = rows.flatten().narrow(0, 0, n_matrices * size).view({n_matrices, size});
  } else {
    triangles = pack_staged(triangles);
  }
  return rows.dim() == 2 ? triangles[0] : triangles;
}

/// Zeros whose pages do not exist before they are written to: left of a triangle's diagonal they never are.
Tensor lazy_zeros(at::IntArrayRef sizes) {
  void* const memory = std::calloc(static_cast<size_t>(c10::multiply_integers(sizes)), sizeof(double));
  if (memory == nullptr) throw std::bad_alloc();
  return torch::from_blob(
      memory, sizes, [](void* owned) { std::free(owned); }, torch::TensorOptions(at::kDouble));
}

/// Puts a piece of packed triangles in its place in `rows`, [n, n] one after the other: right of their diagonals.
void unpack(const SealedFile::Piece& piece, int64_t n, double* rows) {
  const auto* from = reinterpret_cast<const double*>(piece.bytes.data());
  const int64_t size = packed_begin(n, n);
  auto place = static_cast<int64_t>(piece.offset / sizeof(double));
  const int64_t end = place + static_cast<int64_t>(piece.bytes.size() / sizeof(double));
  while (place < end) {
    const int64_t matrix = place / size, at = place % size;
    // the last row that begins at or before `at`
    int64_t j = 0;
    for (int64_t step = int64_t{1} << 40; step > 0; step /= 2)
      if (j + step < n && packed_begin(n, j + step) <= at) j += step;
    for (int64_t within = at; within < size && place < end; ++j) {
      const int64_t begin = packed_begin(n, j), count = std::min(end - place, packed_begin(n, j + 1) - within);
      std::copy_n(from, count, rows + (matrix * n + j) * n + j + (within - begin));
      from += count;
      within += count;
      place += count;
    }
  }
}

}  // namespace

std::vector<int64_t> moment_sizes(KeyShape keys) {
  std::vector<int64_t> sizes{keys.width, keys.width};
  if (keys.experts > 1) sizes.insert(sizes.begin(), keys.experts);
  return sizes;
}

MatrixFile MatrixFile::open(const std::filesystem::path& path, const MatrixKind& kind, KeyShape keys) {
  return with_remedy([&] {
    MatrixFile file(SealedFile::open(path, kind.format), kind, keys);
    const std::vector<TensorInfo>& tensors = file.file_.tensors();
    if (tensors.size() != 1 || tensors[0].name != kind.tensor || tensors[0].dtype != DType::kF64 ||
        tensors[0].shape != stored_shape(tensors[0], kind.shape, keys))
      throw CheckpointError(cat(path.string(), ": not a cached ", kind.title, " of size ", keys.size()));
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
    if (kind_.shape == MatrixShape::kWide) return load_tensors(file_).front().second;
    const int64_t n = keys_.width;
    const Tensor rows = lazy_zeros(moment_sizes(keys_));
    file_.read([&](const SealedFile::Piece& piece) { unpack(piece, n, rows.mutable_data_ptr<double>()); });
    if (kind_.shape == MatrixShape::kLower) return rows.mT();
    mirror_lower(rows.mT());
    return rows;
  });
}

int64_t MatrixFile::bytes() const {
  const std::vector<int64_t> sizes =
      kind_.shape == MatrixShape::kWide ? file_.tensors().front().shape : moment_sizes(keys_);
  return c10::multiply_integers(sizes) * static_cast<int64_t>(sizeof(double));
}

void MatrixFile::check() const {
  with_remedy([&] { file_.check(); });
}

bool is_whole(const std::filesystem::path& path, const std::function<void()>& check) {
  if (!std::filesystem::exists(path)) return false;
  try {
    check();
    return true;
  } catch (const CheckpointError& error) {
    log_warning(cat("statistics: ", error.what()));
    return false;
  }
}

bool has_matrix(const std::filesystem::path& path, const MatrixKind& kind, KeyShape keys) {
  return is_whole(path, [&] { MatrixFile::open(path, kind, keys).check(); });
}

std::string exact_text(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

void write_matrix(const std::filesystem::path& path, const MatrixKind& kind, const Tensor& matrix, Metadata facts) {
  std::error_code problem;
  std::filesystem::create_directories(path.parent_path(), problem);  // a failure shows when the file is written
  const Tensor rows = kind.shape == MatrixShape::kLower ? matrix.mT() : matrix;
  const Tensor stored = kind.shape == MatrixShape::kWide ? rows : packed(rows);
  facts[kNameFact] = path.stem();
  write_tensors(path, kind.format, {{std::string(kind.tensor), stored}}, facts);
}

}  // namespace lancet
