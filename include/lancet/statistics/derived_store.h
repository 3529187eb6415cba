// What solves need of covariances, kept on disk beside them: made once of a layer's moments, which are then not read
// again.
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

/// What is known of the moments that a layer's file was made of.
struct MomentFacts {
  int64_t tokens = 0;        ///< that they were taken over
  double mean_diagonal = 0;  ///< trace(C) / n, without a ridge
};

class DerivedStore {
 public:
  /// `moments`, `placement` and `config` (the model's) outlive the store. `cache`: the folder.
  DerivedStore(MomentSource& moments, const Placement& placement, const ModelConfig& config,
               std::filesystem::path cache)
      : moments_(moments), placement_(placement), config_(config), cache_(std::move(cache)) {}
  virtual ~DerivedStore() = default;

  /// Sets where what was read is kept from now on. Without it every load reads its file.
  void keep_in(std::shared_ptr<KeptMatrices> kept) { kept_ = std::move(kept); }

  /// Collective: makes those of `layers` (ascending) that root's cache lacks, or has damaged, one at a time. What is
  /// made is root's alone, and so is everything below.
  /// Throws: CheckpointError; NumericError when a covariance does not allow it, with what would.
  void prepare(std::span<const int64_t> layers, Communicator& communicator);

  MomentFacts facts(int64_t layer) const;
  virtual std::filesystem::path cache_file(int64_t layer) const = 0;

  /// Whether the last prepare() found the layer's file.
  bool from_cache(int64_t layer) const { return !made_.contains(layer); }
  /// Whether the last prepare() did without making the layer's moments.
  bool moments_from_cache(int64_t layer) const { return from_cache(layer) || moments_.from_cache(layer); }
  /// Seconds in which the last prepare() made moments.
  double collect_seconds() const { return collect_seconds_; }

 protected:
  virtual void make(int64_t layer) const = 0;
  /// What the files hold.
  virtual const MatrixKind& kind() const = 0;
  /// Writes the facts so that facts() finds them again in a file.
  static Metadata to_metadata(const MomentFacts& facts);

  MatrixFile open(int64_t layer) const;
  /// The matrix of the layer's file on its solve device, as MatrixFile::load() has it: only to be read.
  Tensor load_matrix(int64_t layer) const;

  /// Sizes of the moments.
  virtual KeyShape shape_of(int64_t layer) const { return config_.key_shape(layer); }
  at::Device device_of(int64_t layer) const { return placement_.solve_device(layer); }

  MomentSource& moments_;
  const Placement& placement_;
  const ModelConfig& config_;
  std::filesystem::path cache_;

 private:
  /// Whether the layer's file is there and whole; one that is not is named in a warning.
  bool has(int64_t layer) const;
  FileMatrix place_of(int64_t layer) const;

  std::shared_ptr<KeptMatrices> kept_;
  std::set<int64_t> made_;  // by the last prepare()
  double collect_seconds_ = 0;
};

// Cholesky factors of covariances, kept on disk beside them: a covariance is factored once for each ridge, and not read
// again. Read into memory rather than mapped, since a mapped file that is cut ends the process, and since what is used
// is then what has been checked; stored as a packed triangle, which takes half the disk and half the time.

/// <cache>/<content key of the moments>.factor-<ridge>.safetensors.
std::filesystem::path factor_file(const std::filesystem::path& cache, const std::string& content_key, double ridge);

class FactorStore final : public DerivedStore {
 public:
  /// `ridge`: added to C, relative to trace(C) / n.
  FactorStore(MomentSource& moments, const Placement& placement, const ModelConfig& config, std::filesystem::path cache,
              double ridge)
      : DerivedStore(moments, placement, config, std::move(cache)), ridge_(ridge) {}

  /// L [F, F] f64, column-major, on the layer's solve device; C + ridge = L L^T. After prepare(). Throws:
  /// CheckpointError when the cache file has been damaged since.
  Tensor load(int64_t layer) const;
  std::filesystem::path cache_file(int64_t layer) const override {
    return factor_file(cache_, moments_.content_key(layer), ridge_);
  }

 private:
  void make(int64_t layer) const override;
  const MatrixKind& kind() const override;

  double ridge_;
};

// The Cholesky factor of a layer's covariance, which every ridge solve on that layer begins with.

/// L of C + ridge * (trace(C) / F) * I = L L^T: [F, F] f64, column-major, as LAPACK wants it. `covariance` makes C
/// [F, F] f64, or of experts its blocks [E, W, W], and so is L: it is factored in its own memory, so that no second
/// matrix of that size exists, and is asked for again only to say why it has no factor. Throws: NumericError naming
/// `where`, the expert, the smallest eigenvalue and the statistics.ridge that would make C definite.
Tensor factor_covariance(const std::function<Tensor()>& covariance, double ridge, const std::string& where);

/// trace(C) / F of a covariance, or of one's blocks.
double mean_diagonal(const Tensor& moments);

}  // namespace lancet
