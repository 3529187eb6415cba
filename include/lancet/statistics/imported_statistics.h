// Moments from files of other tools, one file per layer.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "lancet/statistics/moment_source.h"

namespace lancet {

/// The mark in a file name that stands for the layer's number.
inline constexpr std::string_view kLayerPlace = "{}";

class ImportedStatistics final : public MomentSource {
 public:
  /// `pattern`: a path with "{}". `config`: the model's. Reads no file: only root must have them. Throws: ConfigError
  /// for layers with experts, for whose moments no such files exist.
  ImportedStatistics(const std::filesystem::path& pattern, std::span<const int64_t> layers, const ModelConfig& config,
                     MomentSide side = MomentSide::kKeys);

  /// Checks the files without reading a matrix. Throws: CheckpointError with the problems of all layers at once: the
  /// file is missing, or check_moments() refuses it.
  void check() const;

  std::string content_key(int64_t layer) const override;
  void prepare(std::span<const int64_t>, Communicator&) override {}
  Covariance load(int64_t layer) const override;
  bool from_cache(int64_t) const override { return false; }

  const std::filesystem::path& file(int64_t layer) const { return files_.at(layer); }
  /// Returns hash_of_bytes() of the layer's file.
  std::string file_hash(int64_t layer) const;

 private:
  std::string_view option_;
  int64_t size_;
  std::map<int64_t, std::filesystem::path> files_;
  mutable std::map<int64_t, std::string> hashes_;  // cached, because each hash reads gigabytes
};

}  // namespace lancet
