// Sums of a statistics pass under way, saved so that a killed pass goes on where it was. The file lies beside the
// cache's; it is replaced at every save and removed when the pass has put its results into the cache.
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

/// Note beside the progress of work whose results go to the cache.
inline constexpr const char* kOncePerModel = "once, then cached";

/// A pass after its first `chunks` chunks.
struct SavedPass {
  int64_t chunks = 0;
  int64_t tokens = 0;
  std::vector<Tensor> sums_FF;  ///< GramAccumulator::panels of each layer, f64; of experts [E, W, W]
};

class PartialSums {
 public:
  /// `key`: all that the sums depend on, the order of the layers and of the chunks included. `save_every_s`: seconds
  /// between saves; saving never takes more than a twentieth of the time. 0: a save after every chunk.
  PartialSums(const std::filesystem::path& folder, std::string key, double save_every_s);

  const std::filesystem::path& file() const { return file_; }

  /// What an earlier run of the same pass saved, on the host: a sum for the keys of each layer. nullopt when there is
  /// nothing, or, with a warning, when the file is damaged or another pass's.
  std::optional<SavedPass> load(std::span<const KeyShape> layers) const;

  /// Whether it is time to save. Cheap.
  bool due() const;
  /// The file appears complete or not at all. A disk that refuses is a warning, once: the pass goes on unsaved.
  void save(const SavedPass& pass);
  /// Whether a pass, of whatever key, was saved in `folder` at that time or later.
  static bool are_saved_since(const std::filesystem::path& folder, std::filesystem::file_time_type time);
  /// A pass is over: removes what was saved of it under its key, and under keys that begin with it and a dot (shares of
  /// a pass by several ranks, whatever their number).
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
