// An output folder that appears complete or not at all: built as a hidden sibling, renamed once. A manifest in it lists
// what was written; nothing else is ever taken away.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace lancet {

enum class IfExists { kError, kReplace };

/// What a folder holds. Its manifest says so; one from before there were manifests shows it by its record.
struct OutputKind {
  std::string_view name;    ///< "edit"
  std::string_view record;  ///< a JSON file that it always has: "report.json"
  std::string_view format;  ///< how the record's "format" begins: "lancet-report-"
};

class OutputFolder {
 public:
  /// Makes the staging folder beside `target` (same file system); parents are created. Removes what dead processes left
  /// for the same target, and puts it back where one died between taking it away and replacing it.
  /// Throws: ConfigError when `target` exists and `policy` is kError; when it exists with kReplace and has anything in
  /// it that lancet did not write there, which is named; when it is not a folder; CheckpointError when the disk
  /// refuses.
  OutputFolder(std::filesystem::path target, IfExists policy, const OutputKind& kind);
  ~OutputFolder();  ///< Removes the staging folder unless committed.
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& target() const { return target_; }
  /// Write here.
  const std::filesystem::path& staging() const { return staging_; }

  /// Writes the manifest, syncs the files and puts the folder in place in one step (an existing target is exchanged,
  /// then what lancet wrote in it removed). Throws: CheckpointError; ConfigError when `target` came into being since
  /// (kError), or has something in it by now that lancet did not write. The old target is then untouched.
  void commit();

 private:
  void exchange();

  std::filesystem::path target_;
  std::filesystem::path staging_;
  IfExists policy_;
  OutputKind kind_;
  int lock_ = -1;  // descriptor of the staging folder; its lock tells other processes that somebody works here
};

/// Puts the target back that a killed run had set aside, and removes the unfinished folders of runs that are gone, as
/// the constructor does, and a lock that nobody holds. What cannot be read stays.
void recover_output(const std::filesystem::path& target, const OutputKind& kind);

/// The checks of the constructor alone, so that a job can fail before hours of work.
/// Throws: ConfigError as above.
void check_output_target(const std::filesystem::path& target, IfExists policy, const OutputKind& kind);

/// Adds files that lancet made in a finished folder to its manifest, where it has one; what lies elsewhere is left out.
/// Throws: CheckpointError when the disk refuses.
void note_written(const std::filesystem::path& folder, std::span<const std::filesystem::path> files);

/// "<target><suffix>" beside the folder that `target` means, whatever slashes and links it is written with.
/// Throws: ConfigError for a path without a name.
std::filesystem::path sibling_of(const std::filesystem::path& target, std::string_view suffix);

/// Held from the start of a job: a second one for the same target fails at once rather than after hours. Ends with the
/// process, however that ends.
class OutputLock {
 public:
  /// Parents are created, and what dead processes left of the target is dealt with as by OutputFolder, so that its
  /// checks come after this. Where nothing can be locked (some network file systems), nothing is. Throws: ConfigError
  /// when another run holds it; CheckpointError when the disk refuses.
  OutputLock(const std::filesystem::path& target, const OutputKind& kind);
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;  // -1: nothing is locked
};

// Where outputs may lie: what a job that replaces a folder must not delete.

/// The output must not be the model, lie in it, or hold it: replacing it would delete the base. Throws: ConfigError.
void check_apart(const std::filesystem::path& output, const std::filesystem::path& model);

/// `--out` of a command whose outputs are of that kind. Throws: ConfigError for one that is there and may not be
/// replaced, or of which not all is lancet's.
void check_new_output(const std::filesystem::path& out, IfExists if_exists, const OutputKind& kind);

/// The statistics cache must not lie in a folder that is replaced or goes away. Throws: ConfigError.
void check_cache_outside(const std::filesystem::path& cache, const std::filesystem::path& folder);

}  // namespace lancet
