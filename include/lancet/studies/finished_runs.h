// Keeps the finished runs of a study until its output is complete. Each run's result is saved as text beside the
// output, so that the same command continues after any interruption. A run is used again only if everything that its
// result depends on is the same.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/core/reporter.h"
#include "lancet/requests/request.h"

namespace lancet {

/// Where a study keeps its finished runs, and a callback for them.
struct KeptRuns {
  std::filesystem::path folder = {};  ///< unfinished_folder(output); empty: no run is kept
  /// Called for each kept run, whether it finished now or in an earlier command.
  std::function<void(const std::string& name)> on_kept = {};
};

class FinishedRuns {
 public:
  explicit FinishedRuns(KeptRuns kept) : kept_(std::move(kept)) {}

  /// Returns the saved text of the run with this key; nullopt: there is none. A damaged file gives a warning with its
  /// name and is not used. `name`: the name of the run.
  std::optional<std::string> find(const std::string& key, const std::string& name) const;
  /// Saves a run. Throws: CheckpointError when the disk refuses; ConfigError when something that is not lancet's has
  /// the folder's name.
  void keep(const std::string& key, const std::string& text, const std::string& name) const;

 private:
  std::filesystem::path file(const std::string& key) const;
  void tell(const std::string& name) const;

  KeptRuns kept_;
};

/// What all runs of a study share, as far as their results depend on it.
struct StudySetting {
  std::string weights = {};                 ///< content hash of the model's checkpoint
  std::string config_json = {};             ///< text of its config.json
  std::string computed_on = {};             ///< types, devices, number of processes
  std::vector<std::string> questions = {};  ///< what the evaluation asks
};

/// Returns the key of a run, made from the setting, the resolved job (except the place of its output), the requests,
/// the version of lancet, and the size and time of every file that the job names.
std::string run_key(const StudySetting& setting, const ConfigTree& resolved, std::span<const EditRequest> requests);

/// Counts the runs of a study, and estimates from the past runs how long the remaining ones take.
class RunsLeft {
 public:
  explicit RunsLeft(int64_t total) : total_(total) {}

  void begin_run() { begun_ = stage_now(); }
  void end_run();
  /// Counts a run that an earlier command finished.
  void skip_run() { ++skipped_; }
  /// Returns "2 of 3 runs done, about 1 min 20 s left".
  std::string text() const;

 private:
  int64_t total_, done_ = 0, skipped_ = 0;
  double seconds_ = 0;
  StageTime begun_{};
};

}  // namespace lancet
