#include "lancet/io/unfinished_folder.h"

#include <algorithm>
#include <vector>

#include "folder_entries.h"
#include "folder_manifest.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "leftovers.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using Kind = FolderEntry::Kind;

constexpr std::string_view kHolds = "unfinished edit";

/// A batch's values are named after a hash.
bool is_values_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".safetensors";
  constexpr size_t kDigits = 32;
  return name.size() == kDigits + kSuffix.size() && name.ends_with(kSuffix) &&
         name.find_first_not_of("0123456789abcdef") == kDigits;
}

/// Whether a run's own progress made the entry: the progress folder's own manifest tells of what lies in it; in its
/// staging folders only lancet writes.
bool is_ours(const FolderEntry& entry) {
  if (entry.kind == Kind::kFolder && entry.path == kProgressFolder) return true;
  if (is_staging_name(std::string_view(entry.path).substr(0, entry.path.find('/')), kProgressFolder)) return true;
  return entry.kind == Kind::kFile &&
         (entry.path == kManifestFile || is_values_name(entry.path) || is_temporary_name(entry.path));
}

std::vector<std::string> foreign_in(const fs::path& folder) {
  std::vector<std::string> foreign;
  bool has_files = false;
  for_each_entry(folder, [&](const FolderEntry& entry) {
    has_files = has_files || !is_temporary_name(entry.path);
    if (entry.path.find('/') == std::string::npos && !is_ours(entry))
      foreign.push_back(entry.path + (entry.kind == Kind::kFolder ? "/" : ""));
  });
  if (has_entry(folder / kProgressFolder) && foreign.empty())
    for (const std::string& path : foreign_entries(
             folder / kProgressFolder, read_written(folder / kProgressFolder, kProgressKind).value_or(WrittenFiles{})))
      foreign.push_back(cat(kProgressFolder, "/", path));
  std::ranges::sort(foreign);
  if (foreign.empty() && has_files && !has_manifest_of(folder, kHolds))
    foreign.push_back(cat("files without lancet's ", kManifestFile));
  return foreign;
}

}  // namespace

fs::path unfinished_folder(const fs::path& output) { return sibling_of(output, ".unfinished"); }

void check_unfinished(const fs::path& folder) {
  if (!has_entry(folder)) return;
  std::error_code error;
  if (fs::is_symlink(folder, error) || !fs::is_directory(folder, error))
    throw ConfigError(cat(folder.string(), ": expected a folder of lancet's or nothing, since that is where it keeps ",
                          "what an unfinished run has done, got something else; name another output"));
  if (const std::vector<std::string> foreign = foreign_in(folder); !foreign.empty())
    throw ConfigError(cat(folder.string(), ": expected nothing but what lancet keeps there of an unfinished run, got ",
                          some_of(foreign), "; move that elsewhere, or name another output"));
}

void make_unfinished(const fs::path& folder) {
  if (has_manifest_of(folder, kHolds)) return;
  check_unfinished(folder);
  make_folders(folder);
  write_marker(folder, kHolds);
}

void remove_unfinished(const fs::path& folder) {
  try {
    if (!has_entry(folder)) return;
    check_unfinished(folder);
    const fs::path progress = folder / kProgressFolder;
    if (const auto written = read_written(progress, kProgressKind)) {
      // first of all: a progress of which some is gone must not be gone on from
      remove_entries(progress, [](const FolderEntry& entry) { return entry.path == kProgressKind.record; });
      remove_written(progress, *written);
    }
    remove_entries(folder, [](const FolderEntry& entry) { return entry.path != kManifestFile && is_ours(entry); });
    remove_written(folder, {});
  } catch (const Error& error) {
    log_warning(cat("not removed: ", error.what()));
  }
}

}  // namespace lancet
