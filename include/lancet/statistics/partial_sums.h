// Saves the sums of a running statistics pass, so that a killed pass resumes where it stopped. The file is beside the
// cache's files. It is replaced at every save, and removed when the pass has put its results into the cache.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/models/model_config.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// A note shown beside the progress of work whose results go to the cache.
inline constexpr const char* kOncePerModel = "once, then cached";

/// The state of a pass after its first `chunks` chunks.
struct SavedPass {
  int64_t chunks = 0;
  int64_t tokens = 0;
  std::vector<Tensor> sums_FF;  ///< GramAccumulator::panels of each layer, f64; with experts [E, W, W]
};

class PartialSums {
 public:
  /// `key`: a key of everything that the sums depend on, including the order of the layers and of the chunks.
  /// `save_every_s`: seconds between saves; saving never takes more than a twentieth of the time. 0: a save after every
  /// chunk.
  PartialSums(const std::filesystem::path& folder, std::string key, double save_every_s);

  const std::filesystem::path& file() const { return file_; }

  /// Returns what an earlier run of the same pass saved, on the host: one sum for the keys of each layer. nullopt:
  /// there is nothing, or, with a warning, the file is damaged or belongs to another pass.
  std::optional<SavedPass> load(std::span<const KeyShape> layers) const;

  /// Whether it is time to save. Cheap.
  bool due() const;
  /// Saves the pass; the file appears complete or not at all. If the disk refuses, it warns once, and the pass
  /// continues unsaved.
  void save(const SavedPass& pass);
  /// Whether any pass was saved in `folder` at that time or later.
  static bool are_saved_since(const std::filesystem::path& folder, std::filesystem::file_time_type time);
  /// Removes what was saved of a finished pass, under its key and under keys that begin with it and a dot (shares of a
  /// pass by any number of ranks).
  static void remove_all(const std::filesystem::path& folder, const std::string& key);

 private:
  using Clock = std::chrono::steady_clock;

  std::filesystem::path file_;
  std::string key_;
  double save_every_s_;
  bool refused_ = false;
  double last_save_took_s_ = 0;
  Clock::time_point last_saved_ = Clock::now();
};

}  // namespace lancet
