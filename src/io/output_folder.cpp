// Staging folders are named ".<target>.lancet-<pid>" and locked (flock) while their process lives. A leftover is one
// whose process is dead and whose lock is free: a process id alone means nothing to another container or machine that
// shares the folder. Where folders cannot be locked (NFS), leftovers stay.
#include "lancet/io/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include "file_handle.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

std::string staging_prefix(const fs::path& target) { return cat(".", target.filename().string(), ".lancet-"); }

/// Absolute, without "." and "..", without a trailing slash; a symbolic link to a folder is followed, so that what it
/// points to is replaced and not the link.
fs::path resolve_target(const fs::path& target) {
  std::error_code error;
  const fs::path absolute = target.empty() ? target : fs::absolute(target, error);
  fs::path resolved = fs::weakly_canonical(absolute, error);
  if (error) resolved = absolute.lexically_normal();
  if (!resolved.has_filename()) resolved = resolved.parent_path();
  if (!resolved.has_filename())
    throw ConfigError(cat("'", target.string(),
                          "': expected a folder to write to, got a path without a name; "
                          "name a new folder"));
  return resolved;
}

/// The folder that the first missing part of the path would be made in.
fs::path nearest_existing(fs::path path) {
  while (!has_entry(path) && path.has_relative_path()) path = path.parent_path();
  return path;
}

void check_resolved_target(const fs::path& target, IfExists policy, const std::string& marker) {
  std::error_code error;
  if (has_entry(target)) {
    if (!fs::is_directory(target, error))
      throw ConfigError(cat(target.string(), ": expected a folder or nothing, got a file; name another folder"));
    if (policy == IfExists::kError)
      throw ConfigError(cat(target.string(),
                            ": expected nothing of that name, got a folder; name another one, or set "
                            "output.replace: true to replace it"));
    if (!has_entry(target / marker) && !fs::is_empty(target, error))
      throw ConfigError(cat(target.string(), ": expected a folder that lancet wrote (with a file ", marker,
                            ") or an empty one, got other files, which lancet does not delete; name another folder, or "
                            "remove this one yourself"));
  }
  const fs::path parent = nearest_existing(target.parent_path());
  if (!fs::is_directory(parent, error))
    throw ConfigError(cat(target.string(), ": expected to make it in a folder, got the file ", parent.string(),
                          "; name another folder"));
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    throw ConfigError(file_problem(parent, "cannot make a folder in it", errno));
}

/// The process id in a staging folder's name; nullopt for any other name.
std::optional<pid_t> staging_owner(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  pid_t owner = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), owner);
  const bool whole = end == name.data() + name.size() || *end == '-';
  return error == std::errc() && owner > 0 && whole ? std::optional(owner) : std::nullopt;
}

/// A descriptor that holds the folder's lock, or nothing when somebody else holds it or the file system has no locks.
std::optional<FileHandle> try_lock(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  FileHandle handle(descriptor, folder);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) return std::nullopt;
  return handle;
}

/// Best effort: what cannot be removed stays, and harms nobody.
void remove_stale_staging(const fs::path& target) {
  const std::string prefix = staging_prefix(target);
  std::error_code error;
  fs::directory_iterator entry(target.parent_path(), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::optional<pid_t> owner = staging_owner(entry->path().filename().string(), prefix);
    // A living owner may be about to take its lock. Our own id without our lock is a dead process of the same id.
    if (!owner || (*owner != ::getpid() && (::kill(*owner, 0) == 0 || errno != ESRCH))) continue;
    if (const std::optional<FileHandle> lock = try_lock(entry->path())) {
      std::error_code ignored;
      fs::remove_all(entry->path(), ignored);
    }
  }
}

void sync_tree(const fs::path& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_symlink()) continue;
    if (entry->is_directory())
      sync_folder(entry->path());
    else
      FileHandle::open_regular(entry->path()).sync();
  }
  if (error) throw CheckpointError(file_problem(folder, "cannot list the folder", error.value()));
  sync_folder(folder);
}

enum class Place { kNew, kExchange };

/// One renameat2(2). Returns 0 or the error number.
int rename_at_once(const fs::path& from, const fs::path& to, Place place) {
  const unsigned flags = place == Place::kNew ? RENAME_NOREPLACE : RENAME_EXCHANGE;
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0 ? 0 : errno;
}

/// For file systems without the flags: the old folder steps aside, and comes back when the new one cannot take its
/// place. Between the two renames the target is absent, never half.
int rename_in_steps(const fs::path& from, const fs::path& to, Place place) {
  if (place == Place::kNew) {
    if (has_entry(to)) return EEXIST;
    return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  }
  // No staging folder's name: should we die here, nobody takes the user's only copy for a leftover.
  const fs::path aside = to.parent_path() / cat(staging_prefix(to), "old-", ::getpid());
  if (::rename(to.c_str(), aside.c_str()) != 0) return errno;
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int error_number = errno;
    ::rename(aside.c_str(), to.c_str());
    return error_number;
  }
  // As if exchanged. Should this fail, the new folder is in place all the same and the old one stays aside.
  static_cast<void>(::rename(aside.c_str(), from.c_str()));
  return 0;
}

int put_in_place(const fs::path& from, const fs::path& to, Place place) {
  const int error_number = rename_at_once(from, to, place);
  const bool unsupported = error_number == EINVAL || error_number == ENOSYS || error_number == EOPNOTSUPP;
  return unsupported ? rename_in_steps(from, to, place) : error_number;
}

}  // namespace

void check_output_target(const fs::path& target, IfExists policy, const std::string& marker) {
  check_resolved_target(resolve_target(target), policy, marker);
}

OutputFolder::OutputFolder(fs::path target, IfExists policy, std::string marker)
    : target_(resolve_target(target)), policy_(policy), marker_(std::move(marker)) {
  check_resolved_target(target_, policy_, marker_);
  std::error_code error;
  fs::create_directories(target_.parent_path(), error);
  if (error) throw CheckpointError(file_problem(target_.parent_path(), "cannot make the folder", error.value()));
  remove_stale_staging(target_);

  const std::string name = cat(staging_prefix(target_), ::getpid());
  for (int64_t attempt = 0; lock_ < 0; ++attempt) {
    // Another OutputFolder of this process may work on the same target.
    staging_ = target_.parent_path() / (attempt == 0 ? name : cat(name, "-", attempt));
    if (::mkdir(staging_.c_str(), 0777) == 0) {
      lock_ = FileHandle::open_folder(staging_).release();
    } else if (errno != EEXIST) {
      throw CheckpointError(file_problem(staging_, "cannot make the folder", errno));
    }
  }
  // May fail where folders cannot be locked; there nobody removes leftovers either.
  static_cast<void>(::flock(lock_, LOCK_EX | LOCK_NB));
}

OutputFolder::~OutputFolder() {
  if (lock_ >= 0) ::close(lock_);
  if (staging_.empty()) return;
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
}

void OutputFolder::commit() {
  sync_tree(staging_);
  // Again: hours may have passed since the constructor looked.
  check_resolved_target(target_, policy_, marker_);
  int error_number = put_in_place(staging_, target_, has_entry(target_) ? Place::kExchange : Place::kNew);
  if (error_number == EEXIST) {
    check_resolved_target(target_, policy_, marker_);
    error_number = put_in_place(staging_, target_, Place::kExchange);
  }
  if (error_number != 0) throw CheckpointError(file_problem(target_, "cannot put the folder in place", error_number));
  // What is now at the staging place is the old target, if there was one: no longer the folder that the destructor
  // removes.
  const fs::path old = std::exchange(staging_, {});
  sync_folder(target_.parent_path());
  std::error_code ignored;
  fs::remove_all(old, ignored);
}

}  // namespace lancet
