// An output folder that appears complete or not at all: built as a hidden sibling, renamed once.
#pragma once

#include <filesystem>
#include <string>

namespace lancet {

enum class IfExists { kError, kReplace };

class OutputFolder {
 public:
  /// Makes the staging folder beside `target` (same file system); parents are created. Removes staging folders that
  /// dead processes left for the same target. Throws: ConfigError when `target` exists and `policy` is kError (remedy:
  /// output.replace: true), when it exists with kReplace but was not written by lancet (no file `marker` in it and not
  /// empty: never delete somebody's folder), or is not a folder; CheckpointError when the disk refuses.
  OutputFolder(std::filesystem::path target, IfExists policy, std::string marker);
  ~OutputFolder();  ///< Removes the staging folder unless committed.
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& target() const { return target_; }
  /// Write here.
  const std::filesystem::path& staging() const { return staging_; }

  /// Syncs the files and puts the folder in place in one step (an existing target is exchanged, then removed).
  /// Throws: CheckpointError; the old target is then untouched. ConfigError when `target` came into being since
  /// (kError).
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path staging_;
  IfExists policy_;
  std::string marker_;
  int lock_ = -1;  // descriptor of the staging folder; its lock tells other processes that somebody works here
};

/// The checks of the constructor alone, so that a job can fail before hours of work.
/// Throws: ConfigError as above.
void check_output_target(const std::filesystem::path& target, IfExists policy, const std::string& marker);

}  // namespace lancet
