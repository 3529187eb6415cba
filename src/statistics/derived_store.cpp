#include "lancet/statistics/derived_store.h"

#include <torch/types.h>
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/kernels/gram.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/devices.h"
#include "lancet/statistics/kept_matrices.h"
#include "matrix_file.h"

namespace lancet {
namespace {

constexpr const char* kMeanDiagonal = "mean_diagonal";

}  // namespace

Metadata DerivedStore::to_metadata(const MomentFacts& facts) {
  return {{kTokensFact, std::to_string(facts.tokens)}, {kMeanDiagonal, exact_text(facts.mean_diagonal)}};
}

MatrixFile DerivedStore::open(int64_t layer) const {
  return MatrixFile::open(cache_file(layer), kind(), shape_of(layer));
}

FileMatrix DerivedStore::place_of(int64_t layer) const {
  return {.file = cache_file(layer), .device = device_of(layer)};
}

Tensor DerivedStore::load_matrix(int64_t layer) const {
  const auto read = [&] { return open(layer).load(); };
  return kept_ ? kept_->matrix(place_of(layer), read) : upload(read(), device_of(layer));
}

bool DerivedStore::has(int64_t layer) const {
  return is_whole(cache_file(layer), [&] {
    const MatrixFile file = open(layer);
    if (!kept_) return file.check();
    kept_->check(
        place_of(layer), file.bytes(), [&] { return file.load(); }, [&] { file.check(); });
  });
}

MomentFacts DerivedStore::facts(int64_t layer) const {
  const MatrixFile file = open(layer);
  return {static_cast<int64_t>(file.number(kTokensFact)), file.number(kMeanDiagonal)};
}

void DerivedStore::prepare(std::span<const int64_t> layers, Communicator& communicator) {
  std::vector<int64_t> missing;
  communicator.run_collectively("statistics", [&] {
    if (!communicator.is_root()) return;
    for (const int64_t layer : layers)
      if (!has(layer)) missing.push_back(layer);  // finds a damaged file now, not after hours of work
    // a pass over text can take hours: check first whether its results can be written
    if (!missing.empty()) check_writable(cache_file(missing.front()).parent_path(), "statistics.cache");
  });
  missing = broadcast_numbers(communicator, missing);
  made_ = {missing.begin(), missing.end()};
  collect_seconds_ = 0;
  if (missing.empty()) return;
  const auto begin = std::chrono::steady_clock::now();
  moments_.prepare(missing, communicator);
  collect_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  communicator.run_collectively("factors", [&] {
    if (!communicator.is_root()) return;
    Progress progress("factors", static_cast<int64_t>(missing.size()), "layers");
    for (const int64_t layer : missing) {
      make(layer);
      progress.advance();
    }
  });
}

namespace {

constexpr MatrixKind kFactor{{"lancet-factor-2"}, "lower_columns", "factor of a covariance", MatrixShape::kLower};

}  // namespace

std::filesystem::path factor_file(const std::filesystem::path& cache, const std::string& content_key, double ridge) {
  return cache / cat(content_key, ".factor-", exact_text(ridge), ".safetensors");
}

void FactorStore::make(int64_t layer) const {
  MomentFacts facts;
  const auto covariance = [&] {
    Covariance moments = moments_.load(layer);
    facts = {moments.tokens, mean_diagonal(moments.moment_FF)};
    return upload(moments.moment_FF, device_of(layer));
  };
  const Tensor lower_FF = factor_covariance(covariance, ridge_, cat("layer ", layer));
  write_matrix(cache_file(layer), kFactor, lower_FF, to_metadata(facts));
}

const MatrixKind& FactorStore::kind() const { return kFactor; }

Tensor FactorStore::load(int64_t layer) const { return load_matrix(layer); }

namespace {

/// Returns the smallest power of ten for the ridge that lifts all eigenvalues above rounding errors.
double sufficient_ridge(double smallest, double largest, double mean_diagonal, int64_t size) {
  const double rounding = largest * static_cast<double>(size) * std::numeric_limits<double>::epsilon();
  const double needed = (std::max(-smallest, 0.0) + 10.0 * rounding) / mean_diagonal;
  return std::pow(10.0, std::ceil(std::log10(needed)));
}

NumericError not_definite(const Tensor& covariance_FF, double mean, double ridge, const std::string& where) {
  if (!covariance_FF.isfinite().all().item<bool>())
    return NumericError(
        cat(where, ": the covariance has NaN or Inf: the statistics are damaged, remove them from the cache"));
  if (!(mean > 0))
    return NumericError(
        cat(where, ": the covariance has the mean diagonal ", mean, ", expected a positive one: no key ",
            "of this layer is in it. Look at the imported file, or at the layer's weights in the model;",
            " statistics from the cache: remove them, they are made again"));
  const Tensor spectrum = at::linalg_eigvalsh(covariance_FF);
  const double smallest = spectrum[0].item<double>();
  const double needed = sufficient_ridge(smallest, spectrum[-1].item<double>(), mean, covariance_FF.size(0));
  return NumericError(cat(where, ": the covariance is not positive definite: smallest eigenvalue ", smallest,
                          " at mean diagonal ", mean, ", ridge ", ridge, ". Set statistics.ridge: ", needed,
                          " or use more tokens"));
}

/// Describes the failure, with experts that of the matrix with the smallest eigenvalue.
NumericError no_factor(const Tensor& covariance, double ridge, const std::string& where) {
  const double mean = mean_diagonal(covariance);
  if (covariance.dim() == 2 || !std::isfinite(mean) || !(mean > 0))
    return not_definite(covariance.dim() == 2 ? covariance : covariance.flatten(0, 1), mean, ridge, where);
  const auto expert = at::linalg_eigvalsh(covariance).select(-1, 0).argmin().item<int64_t>();
  return not_definite(covariance[expert], mean, ridge, cat(where, ", expert ", expert));
}

}  // namespace

double mean_diagonal(const Tensor& moments) { return moments.diagonal(0, -2, -1).mean().item<double>(); }

Tensor factor_covariance(const std::function<Tensor()>& covariance, double ridge, const std::string& where) {
  const torch::NoGradGuard no_grad;
  Tensor matrix_FF = covariance();
  if (ridge > 0) matrix_FF.diagonal(0, -2, -1).add_(ridge * mean_diagonal(matrix_FF));
  Tensor lower = cholesky_in_place(std::move(matrix_FF));
  if (!lower.defined()) throw no_factor(covariance(), ridge, where);
  return lower;
}

namespace {

int64_t bytes_of(const Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

/// Copies a matrix to page-locked memory, from which the device copies at its full rate.
Tensor page_locked(const Tensor& matrix, at::Device device) {
  const Tensor dense = matrix.is_non_overlapping_and_dense() ? matrix : matrix.contiguous();
  return Placement::staging_buffer(bytes_of(dense), device)
      .view(dense.scalar_type())
      .as_strided(dense.sizes(), dense.strides())
      .copy_(dense);
}

}  // namespace

int64_t KeptMatrices::locked_bytes(int64_t bytes) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
}

int64_t KeptMatrices::room_on(at::Device device) const {
  const auto at = std::ranges::find(room_, device, &Room::value_type::first);
  return at == room_.end() ? 0 : at->second;
}

int64_t KeptMatrices::bytes_on(at::Device device) const {
  int64_t bytes = 0;
  for (const auto& [key, entry] : entries_)
    if (entry.matrix.defined() && entry.matrix.device() == device) bytes += entry.bytes;
  return bytes;
}

bool KeptMatrices::make_place(at::Device device, int64_t bytes, int64_t since) {
  const int64_t room = room_on(device);
  int64_t taken = bytes_on(device);
  std::vector<Entry*> idle;
  for (auto& [key, entry] : entries_)
    if (entry.matrix.defined() && entry.matrix.device() == device && entry.asked < since) idle.push_back(&entry);
  std::ranges::sort(idle, {}, &Entry::asked);
  size_t n_leaving = 0;
  while (taken + bytes > room && n_leaving < idle.size()) taken -= idle[n_leaving++]->bytes;
  if (taken + bytes > room) return false;
  for (size_t i = 0; i < n_leaving; ++i) idle[i]->matrix.reset();
  return true;
}

void KeptMatrices::keep(Entry& entry, const Tensor& matrix, const FileMatrix& place, int64_t since) {
  const int64_t bytes = bytes_of(matrix);
  const at::Device host = Placement::host();
  if (make_place(place.device, bytes, since)) {
    entry.matrix = upload(matrix, place.device);
    entry.bytes = bytes;
  } else if (place.device != host && make_place(host, locked_bytes(bytes), since)) {
    entry.matrix = page_locked(matrix, place.device);
    entry.bytes = locked_bytes(bytes);
  }
}

Tensor KeptMatrices::matrix(const FileMatrix& place, const Read& read) {
  const torch::NoGradGuard no_grad;
  const std::lock_guard lock(mutex_);
  const FileIdentity file = identify_file(place.file);
  Entry& entry = entries_[{place.file, place.part}];
  const int64_t since = std::exchange(entry.asked, ++clock_);
  if (entry.matrix.defined() && entry.file == file) {
    if (entry.matrix.device() == place.device) return entry.matrix;
    const Tensor there = entry.matrix.to(place.device, /*non_blocking=*/true);
    if (make_place(place.device, bytes_of(there), since)) {
      entry.matrix = there;
      entry.bytes = bytes_of(there);
    }
    return there;
  }
  entry.matrix.reset();
  entry.file = {};
  const Tensor matrix = read();
  ++reads_;
  // the file changed while it was read: its contents were checked and are used, but not kept for the next time
  if (identify_file(place.file) != file) return upload(matrix, place.device);
  entry.file = file;
  keep(entry, matrix, place, since);
  if (!entry.matrix.defined()) return upload(matrix, place.device);
  return entry.matrix.to(place.device, /*non_blocking=*/true);
}

bool KeptMatrices::has_room(const FileMatrix& place, int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto fits = [&](at::Device device, int64_t size) { return bytes_on(device) + size <= room_on(device); };
  const at::Device host = Placement::host();
  return fits(place.device, bytes) || (place.device != host && fits(host, locked_bytes(bytes)));
}

void KeptMatrices::check(const FileMatrix& place, int64_t bytes, const Read& read, const std::function<void()>& check) {
  const FileIdentity file = identify_file(place.file);
  const Key key{place.file, place.part};
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = entries_.find(key); at != entries_.end() && at->second.file == file) return;
  }
  if (has_room(place, bytes)) {
    matrix(place, read);
    return;
  }
  check();
  if (identify_file(place.file) != file) return;
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  if (entry.file != file) entry = {.file = file, .asked = entry.asked};
}

int64_t KeptMatrices::kept_bytes(at::Device device) const {
  const std::lock_guard lock(mutex_);
  return bytes_on(device);
}

}  // namespace lancet
