#include "lancet/statistics/imported_statistics.h"

#include "imported_keys.h"
#include "lancet/checkpoint/sealed_file.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/statistics/imported_moments.h"

namespace lancet {
namespace {

/// Increase the number when the meaning of imported files changes.
constexpr std::string_view kImportFormat = "lancet-import-2";

std::filesystem::path file_of(std::string pattern, int64_t layer) {
  const std::string number = std::to_string(layer);
  for (size_t at = 0; (at = pattern.find(kLayerPlace, at)) != std::string::npos; at += number.size())
    pattern.replace(at, kLayerPlace.size(), number);
  return pattern;
}

}  // namespace

ImportedStatistics::ImportedStatistics(const std::filesystem::path& pattern, std::span<const int64_t> layers,
                                       const ModelConfig& config, MomentSide side)
    : option_(side == MomentSide::kKeys ? "statistics.import" : "statistics.import_gradients"),
      size_(imported_key_size(config, layers, option_)) {
  if (side == MomentSide::kGradients) size_ = config.d_model;
  for (const int64_t layer : layers) files_[layer] = file_of(pattern.string(), layer);
}

void ImportedStatistics::check() const {
  std::vector<std::string> problems;
  for (const auto& [layer, file] : files_) {
    try {
      check_moments(file, size_);
    } catch (const CheckpointError& error) {
      problems.push_back(cat(option_, ": layer ", layer, ": ", error.what()));
    }
  }
  if (!problems.empty()) throw CheckpointError(join(problems, "\n"));
}

std::string ImportedStatistics::file_hash(int64_t layer) const {
  std::string& hash = hashes_[layer];
  if (hash.empty()) hash = hash_of_bytes(*MappedFile::open(file(layer)));
  return hash;
}

std::string ImportedStatistics::content_key(int64_t layer) const {
  return ContentHash().add(kImportFormat).add(file_hash(layer)).hex();
}

Covariance ImportedStatistics::load(int64_t layer) const { return import_moments(file(layer), size_); }

}  // namespace lancet
