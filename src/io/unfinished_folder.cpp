#include "lancet/io/unfinished_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <optional>
#include <vector>

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

/// Whether the name is that of a batch's values, which is made of a hash.
bool is_values_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".safetensors";
  constexpr size_t kDigits = 32;
  return name.size() == kDigits + kSuffix.size() && name.ends_with(kSuffix) &&
         name.find_first_not_of("0123456789abcdef") == kDigits;
}

/// Whether a run's own progress made the entry. The manifest of the progress folder lists its files; only lancet writes
/// into its staging folders.
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
      // first of all, because a run must not continue from progress that is partly removed
      remove_entries(progress, [](const FolderEntry& entry) { return entry.path == kProgressFile; });
      remove_written(progress, *written);
    }
    remove_entries(folder, [](const FolderEntry& entry) { return entry.path != kManifestFile && is_ours(entry); });
    remove_written(folder, {});
  } catch (const Error& error) {
    log_warning(cat("not removed: ", error.what()));
  }
}

namespace {

constexpr std::string_view kTemporaryPrefix = ".lancet-", kTemporarySuffix = ".tmp", kAside = "old-";

struct Owner {
  pid_t process = 0;
  std::string_view rest;  ///< the rest of the name
};

/// Parses the process id at the beginning of the name.
std::optional<Owner> parse_owner(std::string_view name) {
  pid_t process = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
  if (error != std::errc() || process <= 0) return std::nullopt;
  return Owner{process, name.substr(static_cast<size_t>(end - name.data()))};
}

std::optional<Owner> temporary_owner(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix) || !name.ends_with(kTemporarySuffix)) return std::nullopt;
  name.remove_prefix(kTemporaryPrefix.size());
  const std::optional<Owner> owner = parse_owner(name);
  return owner && owner->rest.starts_with('-') ? owner : std::nullopt;
}

struct StagingName {
  pid_t process = 0;
  bool is_aside = false;
};

std::optional<StagingName> parse_staging(std::string_view name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  const bool is_aside = name.starts_with(kAside);
  if (is_aside) name.remove_prefix(kAside.size());
  const std::optional<Owner> owner = parse_owner(name);
  if (!owner || !(owner->rest.empty() || (!is_aside && owner->rest.front() == '-'))) return std::nullopt;
  return StagingName{owner->process, is_aside};
}

/// Whether the process may be gone. A living one may be about to take its lock. If the id is ours but the lock is not,
/// it was a dead process with the same id.
bool may_be_gone(pid_t process) { return process == ::getpid() || (::kill(process, 0) != 0 && errno == ESRCH); }

/// Returns a descriptor that holds the lock; nothing if somebody else holds it, if there are no locks, or if another
/// file has the name now.
std::optional<FileHandle> try_lock(const fs::path& path) {
  const int descriptor = open_descriptor(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  FileHandle handle(descriptor, path);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 || !handle.has_its_name()) return std::nullopt;
  return handle;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  try {
    for (const std::string& name : folder_names(folder.empty() ? fs::path(".") : folder))
      paths.push_back(folder / name);
  } catch (const Error&) {
    // the content of the folder stays, or is refused when it is needed
  }
  return paths;
}

/// Removes a staging folder without a manifest: it is unfinished, and only lancet writes into it. A folder with a
/// manifest may be an earlier target.
void remove_staging(const fs::path& folder, const OutputKind& kind) {
  if (const auto written = has_entry(folder / kManifestFile) ? read_written(folder, kind) : std::nullopt)
    remove_written(folder, *written);
  else if (!has_entry(folder / kManifestFile))
    remove_entries(folder, [](const FolderEntry&) { return true; });
}

/// Moves the old target back, because the user may have no other copy.
void put_back(const fs::path& aside, const fs::path& target, const OutputKind& kind) {
  if (has_entry(target)) {
    if (const auto written = read_written(aside, kind)) remove_written(aside, *written);
  } else if (::rename(aside.c_str(), target.c_str()) == 0) {
    log_warning(cat(target.string(), ": put back from ", aside.string(),
                    ", where a run that was killed while it replaced the folder had left it"));
  }
}

}  // namespace

std::string temporary_name(uint64_t counter) {
  return cat(kTemporaryPrefix, ::getpid(), "-", counter, kTemporarySuffix);
}

bool is_temporary_name(std::string_view name) { return temporary_owner(name).has_value(); }

void remove_stale_temporaries(const fs::path& folder) {
  for (const fs::path& path : entries_of(folder)) {
    const std::string name = path.filename().string();
    const std::optional<Owner> owner = temporary_owner(name);
    if (!owner || !may_be_gone(owner->process)) continue;
    if (const std::optional<FileHandle> lock = try_lock(path)) ::unlink(path.c_str());
  }
}

std::string staging_prefix(const fs::path& target) { return cat(".", target.filename().string(), ".lancet-"); }

fs::path aside_of(const fs::path& target) {
  return target.parent_path() / cat(staging_prefix(target), kAside, ::getpid());
}

fs::path lock_of(const fs::path& target) { return target.parent_path() / cat(staging_prefix(target), "lock"); }

void remove_free_lock(const fs::path& target) {
  const fs::path path = lock_of(target);
  if (const std::optional<FileHandle> lock = try_lock(path)) ::unlink(path.c_str());
}

bool is_staging_name(std::string_view name, const fs::path& target) {
  return parse_staging(name, staging_prefix(target)).has_value();
}

void recover_target(const fs::path& target, const OutputKind& kind) {
  const std::string prefix = staging_prefix(target);
  for (const fs::path& path : entries_of(target.parent_path())) {
    const std::optional<StagingName> name = parse_staging(path.filename().string(), prefix);
    if (!name || !may_be_gone(name->process)) continue;
    const std::optional<FileHandle> lock = try_lock(path);
    if (!lock) continue;
    if (name->is_aside)
      put_back(path, target, kind);
    else
      remove_staging(path, kind);
  }
  remove_stale_temporaries(target.parent_path());
}

}  // namespace lancet
