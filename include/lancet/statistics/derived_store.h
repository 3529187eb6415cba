// What solves need from covariances. It is computed once from a layer's moments and kept on disk beside them; the
// moments are then not read again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "lancet/checkpoint/sealed_file.h"
#include "lancet/runtime/tensor.h"
#include "lancet/statistics/kept_matrices.h"
#include "lancet/statistics/moment_source.h"

namespace lancet {

class MatrixFile;
struct MatrixKind;

/// Facts about the moments from which a layer's file was made.
struct MomentFacts {
  int64_t tokens = 0;        ///< number of tokens of the moments
  double mean_diagonal = 0;  ///< trace(C) / n, without a ridge
};

class DerivedStore {
 public:
  /// `moments`, `placement` and `config` (the model's) must outlive the store. `cache`: the folder.
  DerivedStore(MomentSource& moments, const Placement& placement, const ModelConfig& config,
               std::filesystem::path cache)
      : moments_(moments), placement_(placement), config_(config), cache_(std::move(cache)) {}
  virtual ~DerivedStore() = default;

  /// Sets the owner that keeps loaded matrices from now on. Without it every load reads its file.
  void keep_in(std::shared_ptr<KeptMatrices> kept) { kept_ = std::move(kept); }

  /// Collective. Makes the files of those `layers` (ascending) that are missing or damaged in root's cache, one at a
  /// time. Only root has what is made, and only root may call the functions below. Throws: CheckpointError;
  /// NumericError when a covariance does not allow it, with a remedy.
  void prepare(std::span<const int64_t> layers, Communicator& communicator);

  MomentFacts facts(int64_t layer) const;
  virtual std::filesystem::path cache_file(int64_t layer) const = 0;

  /// Whether the last prepare() found the layer's file.
  bool from_cache(int64_t layer) const { return !made_.contains(layer); }
  /// Whether the last prepare() did not have to compute the layer's moments.
  bool moments_from_cache(int64_t layer) const { return from_cache(layer) || moments_.from_cache(layer); }
  /// Returns the seconds that the last prepare() spent on computing moments.
  double collect_seconds() const { return collect_seconds_; }

 protected:
  virtual void make(int64_t layer) const = 0;
  /// Returns the kind of matrix that the files hold.
  virtual const MatrixKind& kind() const = 0;
  /// Writes the facts so that facts() can read them from a file.
  static Metadata to_metadata(const MomentFacts& facts);

  MatrixFile open(int64_t layer) const;
  /// Returns the matrix of the layer's file on its solve device, as MatrixFile::load() returns it. Do not write to it.
  Tensor load_matrix(int64_t layer) const;

  /// Returns the sizes of the moments.
  virtual KeyShape shape_of(int64_t layer) const { return config_.key_shape(layer); }
  at::Device device_of(int64_t layer) const { return placement_.solve_device(layer); }

  MomentSource& moments_;
  const Placement& placement_;
  const ModelConfig& config_;
  std::filesystem::path cache_;

 private:
  /// Whether the layer's file exists and is intact; a damaged file gives a warning with its name.
  bool has(int64_t layer) const;
  FileMatrix place_of(int64_t layer) const;

  std::shared_ptr<KeptMatrices> kept_;
  std::set<int64_t> made_;  // by the last prepare()
  double collect_seconds_ = 0;
};

// Cholesky factors of covariances, kept on disk beside them: a covariance is factored once per ridge and not read
// again. The file is read into memory rather than mapped, for two reasons: a mapped file that is cut short ends the
// process, and the data in use must be the data that was checked. It is stored as a packed triangle, which takes half
// the disk space and half the time.

/// Returns <cache>/<content key of the moments>.factor-<ridge>.safetensors.
std::filesystem::path factor_file(const std::filesystem::path& cache, const std::string& content_key, double ridge);

class FactorStore final : public DerivedStore {
 public:
  /// `ridge`: added to C, relative to trace(C) / n.
  FactorStore(MomentSource& moments, const Placement& placement, const ModelConfig& config, std::filesystem::path cache,
              double ridge)
      : DerivedStore(moments, placement, config, std::move(cache)), ridge_(ridge) {}

  /// Loads L [F, F] f64, column-major, on the layer's solve device, with C + ridge = L L^T. Call it after prepare().
  /// Throws: CheckpointError when the cache file has been damaged since.
  Tensor load(int64_t layer) const;
  std::filesystem::path cache_file(int64_t layer) const override {
    return factor_file(cache_, moments_.content_key(layer), ridge_);
  }

 private:
  void make(int64_t layer) const override;
  const MatrixKind& kind() const override;

  double ridge_;
};

// The Cholesky factor of a layer's covariance, with which every ridge solve on that layer begins.

/// Computes L with C + ridge * (trace(C) / F) * I = L L^T: [F, F] f64, column-major, as LAPACK needs it. `covariance`
/// makes C [F, F] f64, or with experts its blocks [E, W, W]; L then has the same form. C is factored in its own memory,
/// so that no second matrix of that size exists; `covariance` is called again only to explain a failure. Throws:
/// NumericError that names `where`, the expert, the smallest eigenvalue, and the statistics.ridge that would make C
/// positive definite.
Tensor factor_covariance(const std::function<Tensor()>& covariance, double ridge, const std::string& where);

/// Returns trace(C) / F of a covariance or of its blocks.
double mean_diagonal(const Tensor& moments);

}  // namespace lancet
