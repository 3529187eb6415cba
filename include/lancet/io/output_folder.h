// An output folder that appears complete or not at all: it is built as a hidden sibling and renamed once. Its manifest
// lists what was written; nothing else is ever removed.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace lancet {

enum class IfExists { kError, kReplace };

/// The kind of an output folder, which its manifest names.
struct OutputKind {
  std::string_view name;  ///< "edit"
};

class OutputFolder {
 public:
  /// Makes the staging folder beside `target` (on the same file system) and creates missing parents. Removes what ended
  /// processes left for the same target, and restores a target that a process had moved away but not replaced. Throws:
  /// ConfigError if `target` exists and `policy` is kError; if it exists with kReplace and holds something that lancet
  /// did not write there, which is named; if it is not a folder; CheckpointError if writing fails.
  OutputFolder(std::filesystem::path target, IfExists policy, const OutputKind& kind);
  ~OutputFolder();  ///< removes the staging folder unless committed
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& target() const { return target_; }
  /// Returns the folder to write in.
  const std::filesystem::path& staging() const { return staging_; }

  /// Writes the manifest, syncs the files and puts the folder in place in one step. An existing target is exchanged,
  /// and then the files that lancet wrote in it are removed. Throws: CheckpointError; ConfigError if `target` was
  /// created in the meantime (kError), or now holds something that lancet did not write. The old target is then
  /// unchanged.
  void commit();

 private:
  void exchange();

  std::filesystem::path target_;
  std::filesystem::path staging_;
  IfExists policy_;
  OutputKind kind_;
  int lock_ = -1;  // descriptor of the staging folder; its lock tells other processes that it is in use
};

/// Restores the target that a killed run had set aside. Removes unfinished folders of ended runs, as the constructor
/// does, and a lock that nobody holds. What cannot be read stays.
void recover_output(const std::filesystem::path& target, const OutputKind& kind);

/// Makes only the checks of the constructor, so that a job can fail before hours of work. Throws: ConfigError as above.
void check_output_target(const std::filesystem::path& target, IfExists policy, const OutputKind& kind);

/// Adds files that lancet made in a finished folder to its manifest, if it has one. Files outside the folder are
/// ignored. Throws: CheckpointError if writing fails.
void note_written(const std::filesystem::path& folder, std::span<const std::filesystem::path> files);

/// Returns "<target><suffix>" beside the folder that `target` means; slashes and links in `target` are resolved.
/// Throws: ConfigError for a path without a name.
std::filesystem::path sibling_of(const std::filesystem::path& target, std::string_view suffix);

/// A lock that a job holds from its start, so that a second job for the same target fails at once and not after hours.
/// It ends with the process, however the process ends.
class OutputLock {
 public:
  /// Takes the lock. Creates missing parents, and handles what ended processes left of the target as OutputFolder does,
  /// so make its checks afterwards. If the file system cannot lock (some network file systems), nothing is locked.
  /// Throws: ConfigError if another run holds the lock; CheckpointError if writing fails.
  OutputLock(const std::filesystem::path& target, const OutputKind& kind);
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;  // -1: nothing is locked
};

// Checks places for outputs: a job that replaces a folder must not delete something else.

/// Checks that the output is not the model, not in it, and does not contain it: replacing it would delete the base.
/// Throws: ConfigError.
void check_apart(const std::filesystem::path& output, const std::filesystem::path& model);

/// Checks `--out` of a command whose outputs are of that kind. Throws: ConfigError if it exists and may not be
/// replaced, or if it holds something that is not lancet's.
void check_new_output(const std::filesystem::path& out, IfExists if_exists, const OutputKind& kind);

/// Checks that the statistics cache is not in a folder that is replaced or removed. Throws: ConfigError.
void check_cache_outside(const std::filesystem::path& cache, const std::filesystem::path& folder);

}  // namespace lancet
