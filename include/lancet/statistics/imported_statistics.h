// Moments from files of other tools, one for each layer.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "lancet/statistics/moment_source.h"

namespace lancet {

/// Mark in the name of a file where the layer's number goes.
inline constexpr std::string_view kLayerPlace = "{}";

class ImportedStatistics final : public MomentSource {
 public:
  /// `pattern`: a path with "{}". `config`: the model's. Looks at no file: only root need have them.
  /// Throws: ConfigError for layers with experts, of whose moments there are no such files.
  ImportedStatistics(const std::filesystem::path& pattern, std::span<const int64_t> layers, const ModelConfig& config,
                     MomentSide side = MomentSide::kKeys);

  /// Reads no matrix.
  /// Throws: CheckpointError with every layer's problem at once: the file is missing, or check_moments() refuses it.
  void check() const;

  std::string content_key(int64_t layer) const override;
  void prepare(std::span<const int64_t>, Communicator&) override {}
  Covariance load(int64_t layer) const override;
  bool from_cache(int64_t) const override { return false; }

  const std::filesystem::path& file(int64_t layer) const { return files_.at(layer); }
  /// hash_of_bytes().
  std::string file_hash(int64_t layer) const;

 private:
  std::string_view option_;
  int64_t size_;
  std::map<int64_t, std::filesystem::path> files_;
  mutable std::map<int64_t, std::string> hashes_;  // gigabytes are read for each: once
};

}  // namespace lancet
