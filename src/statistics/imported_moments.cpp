#include "lancet/statistics/imported_moments.h"

#include <torch/types.h>

#include <algorithm>
#include <string_view>

#include "lancet/checkpoint/npz.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

constexpr std::string_view kSum = "mom2.mom2";
constexpr std::string_view kCount = "mom2.count";

/// The largest allowed |S_ij - S_ji| / sqrt(S_ii S_jj). An f32 product is not always symmetric, and 1e4 to 1e5 products
/// are added in f32, each step with an error of 6e-8 (a random walk ends near 2e-5). For a matrix that is not a sum of
/// k k^T the number is about 1.
constexpr double kAsymmetry = 1e-3;

/// The checks go through the matrix in tiles, because a copy of it would take gigabytes.
constexpr int64_t kTile = 2048;

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view key, std::string_view problem) {
  throw CheckpointError(cat(path.string(), ": ", key, ": ", problem));
}

/// `key`: the name of an array whose type was checked.
Tensor read_tensor(const NpzReader& file, std::string_view key) {
  const NpzArray& array = file.info(key);
  Tensor tensor = torch::empty(array.shape, at::TensorOptions(Placement::host()).dtype(to_scalar_type(*array.dtype)));
  file.read(key, {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()});
  return tensor;
}

int64_t read_count(const NpzReader& file, int64_t size) {
  const NpzArray& array = file.info(kCount);
  const bool integral = array.dtype == DType::kI32 || array.dtype == DType::kI64;
  if (!integral || !array.shape.empty())
    fail(file.path(), kCount,
         cat("expected one integer (<i8 []), got ", array.descr, " ", shape_text(array.shape),
             "; use a file that layer_stats of memit or EasyEdit wrote"));
  const int64_t count = read_tensor(file, kCount).item<int64_t>();
  if (count < size)
    fail(file.path(), kCount,
         cat(count, " tokens, expected at least ", size,
             ": a second moment of fewer tokens than dimensions is singular; compute it over more samples"));
  return count;
}

void check_sum(const NpzReader& file, int64_t size) {
  const NpzArray& array = file.info(kSum);
  const std::vector<int64_t> expected{size, size};
  if (array.shape != expected) {
    const bool square = array.shape.size() == 2 && array.shape[0] == array.shape[1];
    const auto sides = [](int64_t n) { return cat(n, " x ", n); };
    fail(file.path(), kSum,
         square ? cat(sides(array.shape[0]), ", expected ", sides(size),
                      ": these are the statistics of another model; use those of the model that is edited")
                : cat("shape ", shape_text(array.shape), ", expected ", shape_text(expected),
                      "; use a file that layer_stats of memit or EasyEdit wrote"));
  }
  if (array.dtype != DType::kF32 && array.dtype != DType::kF64)
    fail(file.path(), kSum,
         cat("expected <f4 or <f8, got ", array.descr, "; use a file that layer_stats of memit or EasyEdit wrote"));
  if (array.fortran_order)
    fail(file.path(), kSum, "expected C order, got Fortran order; convert it with numpy.ascontiguousarray");
}

void check_diagonal(const Tensor& diagonal_F, const std::filesystem::path& path) {
  const double smallest = diagonal_F.min().item<double>();
  // written so that NaN fails, too
  if (!(smallest >= 0.0))
    fail(path, kSum,
         cat("expected sums of squares on the diagonal, got ", smallest,
             "; the file is damaged or no second moment: compute it again"));
}

/// Computes S <- (S + S^T) / 2 / count, and checks S on the way.
void average_in_place(Tensor& sum_FF, int64_t count, const std::filesystem::path& path) {
  const int64_t size = sum_FF.size(0);
  const Tensor diagonal_F = sum_FF.diagonal().clone();
  check_diagonal(diagonal_F, path);
  const Tensor scale_F = diagonal_F.sqrt();
  for (int64_t i = 0; i < size; i += kTile) {
    for (int64_t j = i; j < size; j += kTile) {
      const int64_t rows = std::min(kTile, size - i), columns = std::min(kTile, size - j);
      Tensor upper = sum_FF.narrow(0, i, rows).narrow(1, j, columns);
      Tensor lower = sum_FF.narrow(0, j, columns).narrow(1, i, rows);
      const Tensor difference = (upper - lower.t()).abs_();
      if (!difference.isfinite().all().item<bool>())
        fail(path, kSum,
             cat("expected finite values, got NaN or infinity in rows ", i, " to ", std::max(i + rows, j + columns) - 1,
                 "; the run that made the file overflowed: compute it again"));
      const Tensor bound = torch::outer(scale_F.narrow(0, i, rows), scale_F.narrow(0, j, columns)).mul_(kAsymmetry);
      if ((difference > bound).any().item<bool>())
        fail(path, kSum,
             cat("expected a symmetric matrix, got elements across the diagonal that differ by up to ",
                 difference.max().item<double>(), " in rows ", i, " to ", i + rows - 1,
                 "; the file is damaged or no second moment: compute it again"));
      const Tensor mean = (upper + lower.t()).mul_(0.5).div_(static_cast<double>(count));
      upper.copy_(mean);
      lower.copy_(mean.t());
    }
  }
}

}  // namespace

int64_t check_moments(const std::filesystem::path& path, int64_t size) {
  const NpzReader file = NpzReader::open(path);
  check_sum(file, size);
  return read_count(file, size);
}

Covariance import_moments(const std::filesystem::path& path, int64_t size) {
  const int64_t tokens = check_moments(path, size);
  Tensor sum_FF = read_tensor(NpzReader::open(path), kSum).to(at::kDouble);
  average_in_place(sum_FF, tokens, path);
  return {std::move(sum_FF), tokens};
}

}  // namespace lancet
