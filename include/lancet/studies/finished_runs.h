// What a study has finished before its output is whole: each run's result as text, kept beside the output until then,
// so that the same command goes on after a stop of any kind. A run is found again only by all that its result depends
// on.
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

/// Where a study keeps its finished runs, and who is told of them.
struct KeptRuns {
  std::filesystem::path folder = {};                          ///< unfinished_folder(output); empty: none is kept
  std::function<void(const std::string& name)> on_kept = {};  ///< told of a run that is kept, now or by an earlier run
};

class FinishedRuns {
 public:
  explicit FinishedRuns(KeptRuns kept) : kept_(std::move(kept)) {}

  /// Returns the text that was kept of the run with this key; nullopt: there is none. A file that is damaged is named
  /// in a warning, and not used. `name`: what the run is called.
  std::optional<std::string> find(const std::string& key, const std::string& name) const;
  /// Throws: CheckpointError when the disk refuses; ConfigError when something that is not lancet's has the folder's
  /// name.
  void keep(const std::string& key, const std::string& text, const std::string& name) const;

 private:
  std::filesystem::path file(const std::string& key) const;
  void tell(const std::string& name) const;

  KeptRuns kept_;
};

/// What every run of a study has in common, as far as its result depends on it.
struct StudySetting {
  std::string weights = {};                 ///< content hash of the model's checkpoint
  std::string config_json = {};             ///< text of its config.json
  std::string computed_on = {};             ///< types, devices, number of processes
  std::vector<std::string> questions = {};  ///< what the evaluation asks
};

/// Key of a run: of the setting, the resolved job (but for where its output goes), the requests, the version of lancet,
/// and the size and time of every file that the job names.
std::string run_key(const StudySetting& setting, const ConfigTree& resolved, std::span<const EditRequest> requests);

/// Counts the runs of a study, and says how long the others take by what those so far took.
class RunsLeft {
 public:
  explicit RunsLeft(int64_t total) : total_(total) {}

  void begin_run() { begun_ = stage_now(); }
  void end_run();
  /// A run that an earlier command had finished.
  void skip_run() { ++skipped_; }
  /// "2 of 3 runs done, about 1 min 20 s left".
  std::string text() const;

 private:
  int64_t total_, done_ = 0, skipped_ = 0;
  double seconds_ = 0;
  StageTime begun_{};
};

}  // namespace lancet
