// What solves need of covariances, kept on disk beside them: made once of a layer's moments, which are then not read
// again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>

#include "lancet/checkpoint/sealed_file.h"
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

}  // namespace lancet
