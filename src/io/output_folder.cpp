// Staging folders are named ".<target>.lancet-<pid>" and locked (flock) while their process lives (leftovers.h).
#include "lancet/io/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "folder_manifest.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "leftovers.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// Returns the absolute path without "." and "..", and without a slash at the end. A symbolic link to a folder is
/// followed, so that the folder is replaced and not the link. Throws: ConfigError for a path without a name.
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

/// Returns the deepest folder of the path that exists.
fs::path nearest_existing(fs::path path) {
  while (!has_entry(path) && path.has_relative_path()) path = path.parent_path();
  return path;
}

/// Throws: ConfigError unless lancet wrote everything in the folder. `target`: the path as the user knows it.
void check_replaceable(const fs::path& folder, const fs::path& target, const OutputKind& kind) {
  const std::optional<WrittenFiles> written = read_written(folder, kind);
  const std::vector<std::string> foreign = foreign_entries(folder, written.value_or(WrittenFiles{}));
  if (foreign.empty()) return;
  if (!written)
    throw ConfigError(cat(target.string(), ": expected an output of lancet (", kind.name,
                          ") or an empty folder, got one with ", some_of(foreign),
                          ", which output.replace does not replace; name another folder"));
  throw ConfigError(cat(target.string(), ": expected nothing but what lancet wrote there, got ", some_of(foreign),
                        " too, which lancet does not delete; move that elsewhere, or name another folder"));
}

[[noreturn]] void refuse_existing(const fs::path& target, const OutputKind& kind) {
  throw ConfigError(cat(target.string(), ": expected nothing of that name, got a folder; name another one",
                        read_written(target, kind) ? ", or set output.replace: true to replace it"
                                                   : " (lancet did not write it: output.replace does not help)"));
}

void check_resolved_target(const fs::path& target, IfExists policy, const OutputKind& kind) {
  std::error_code error;
  if (has_entry(target)) {
    if (!fs::is_directory(target, error))
      throw ConfigError(cat(target.string(), ": expected a folder or nothing, got a file; name another folder"));
    if (policy == IfExists::kError) refuse_existing(target, kind);
    check_replaceable(target, target, kind);
  }
  const fs::path parent = nearest_existing(target.parent_path());
  if (!fs::is_directory(parent, error))
    throw ConfigError(cat(target.string(), ": expected to make it in a folder, got the file ", parent.string(),
                          "; name another folder"));
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    throw ConfigError(file_problem(parent, "cannot make a folder in it", errno));
}

void sync_tree(const fs::path& folder) {
  for_each_entry(folder, [&](const FolderEntry& entry) {
    if (entry.kind == FolderEntry::Kind::kFolder)
      sync_folder(folder / entry.path);
    else if (entry.kind == FolderEntry::Kind::kFile)
      FileHandle::open_regular(folder / entry.path).sync();
  });
  sync_folder(folder);
}

/// Exchanges two folders. Returns 0 or the error number. On file systems that cannot do it in one step, the old folder,
/// `to`, is moved aside, and moved back if the new one cannot take its place: `to` is then absent for a moment, but
/// never incomplete.
int exchange_folders(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return 0;
  if (!lacks_rename_flags(errno)) return errno;
  // If this process dies here, the next run puts the user's only copy back. The lock of that copy says that this
  // process lives.
  const fs::path aside = aside_of(to);
  const FileHandle old = FileHandle::open_folder(to);
  static_cast<void>(::flock(old.descriptor(), LOCK_EX | LOCK_NB));
  if (::rename(to.c_str(), aside.c_str()) != 0) return errno;
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int error_number = errno;
    ::rename(aside.c_str(), to.c_str());
    return error_number;
  }
  // As after an exchange. If this fails, the new folder is in place anyway, and the old one stays aside.
  static_cast<void>(::rename(aside.c_str(), from.c_str()));
  return 0;
}

}  // namespace

fs::path sibling_of(const fs::path& target, std::string_view suffix) {
  return fs::path(cat(resolve_target(target).string(), suffix));
}

void recover_output(const fs::path& target, const OutputKind& kind) {
  const fs::path resolved = resolve_target(target);
  recover_target(resolved, kind);
  remove_free_lock(resolved);
}

void check_output_target(const fs::path& target, IfExists policy, const OutputKind& kind) {
  check_resolved_target(resolve_target(target), policy, kind);
}

OutputFolder::OutputFolder(fs::path target, IfExists policy, const OutputKind& kind)
    : target_(resolve_target(target)), policy_(policy), kind_(kind) {
  recover_target(target_, kind_);
  check_resolved_target(target_, policy_, kind_);
  make_folders(target_.parent_path());

  const std::string name = cat(staging_prefix(target_), ::getpid());
  for (int64_t attempt = 0; lock_ < 0; ++attempt) {
    // another OutputFolder of this process may work on the same target
    staging_ = target_.parent_path() / (attempt == 0 ? name : cat(name, "-", attempt));
    if (::mkdir(staging_.c_str(), 0777) == 0) {
      lock_ = FileHandle::open_folder(staging_).release();
    } else if (errno != EEXIST) {
      throw CheckpointError(file_problem(staging_, "cannot make the folder", errno));
    }
  }
  // may fail in folders that cannot be locked; there nobody removes leftovers either
  static_cast<void>(::flock(lock_, LOCK_EX | LOCK_NB));
}

OutputFolder::~OutputFolder() {
  if (lock_ >= 0) ::close(lock_);
  if (!staging_.empty()) remove_entries(staging_, [](const FolderEntry&) { return true; });
}

void OutputFolder::commit() {
  write_manifest(staging_, kind_);
  sync_tree(staging_);
  // again: hours may have passed since the constructor checked it
  check_resolved_target(target_, policy_, kind_);
  int error_number = has_entry(target_) ? EEXIST : rename_new(staging_, target_);
  if (error_number == EEXIST) return exchange();
  if (error_number != 0) throw CheckpointError(file_problem(target_, "cannot put the folder in place", error_number));
  staging_.clear();
  sync_folder(target_.parent_path());
}

/// After the exchange, the staging path has the old target, and no longer the folder that the destructor removes.
void OutputFolder::exchange() {
  check_resolved_target(target_, policy_, kind_);
  if (const int error_number = exchange_folders(staging_, target_); error_number != 0)
    throw CheckpointError(file_problem(target_, "cannot put the folder in place", error_number));
  try {
    // checks what was added to it since the last check; if the old target could only be moved aside, the next run
    // checks it
    if (has_entry(staging_)) check_replaceable(staging_, target_, kind_);
  } catch (...) {
    if (exchange_folders(staging_, target_) != 0) staging_.clear();  // keeps both
    throw;
  }
  const fs::path old = std::exchange(staging_, {});
  sync_folder(target_.parent_path());
  remove_written(old, read_written(old, kind_).value_or(WrittenFiles{}));
}

namespace {

fs::path real_path(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? path.lexically_normal() : real;
}

bool is_inside(const fs::path& inner, const fs::path& outer) {
  const fs::path relative = real_path(inner).lexically_relative(real_path(outer));
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

void check_apart(const fs::path& output, const fs::path& model) {
  if (is_inside(output, model) || is_inside(model, output))
    throw ConfigError(cat("output.dir: ", output.string(), ": overlaps the model folder ", model.string(),
                          ": choose another folder"));
}

void check_new_output(const fs::path& out, IfExists if_exists, const OutputKind& kind) {
  std::error_code error;
  if (if_exists == IfExists::kError && fs::exists(out, error))
    throw ConfigError(cat("--out: ", out.string(), ": exists already: choose another name, or --replace it"));
  check_output_target(out, if_exists, kind);
}

void check_cache_outside(const fs::path& cache, const fs::path& folder) {
  if (is_inside(cache, folder))
    throw ConfigError(cat("statistics.cache: ", cache.string(), ": lies in ", folder.string(),
                          ", which the job replaces or removes: choose another folder for one of the two"));
}

// A file ".<target>.lancet-lock" beside the target, which is locked, and removed again. It names its holder, for the
// message.

namespace {

FileHandle open_lock(const fs::path& path) {
  int descriptor = open_descriptor(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
  // somebody else's leftover in a shared folder: a lock needs no right to write
  if (descriptor < 0 && errno == EACCES)
    descriptor = open_descriptor(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) throw CheckpointError(file_problem(path, "cannot create", errno));
  return {descriptor, path};
}

std::string holder_of(const FileHandle& file) {
  std::array<char, 200> text{};
  const ssize_t got = ::pread(file.descriptor(), text.data(), text.size(), 0);
  return got > 0 ? cat(" (", printable({text.data(), static_cast<size_t>(got)}), ")") : std::string();
}

void name_holder(const FileHandle& file) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = '?';
  const std::string text = cat("process ", ::getpid(), " on ", host.data());
  // only for a message
  if (::ftruncate(file.descriptor(), 0) == 0)
    static_cast<void>(!::pwrite(file.descriptor(), text.data(), text.size(), 0));
}

}  // namespace

OutputLock::OutputLock(const fs::path& target, const OutputKind& kind) {
  const fs::path resolved = resolve_target(target);
  make_folders(resolved.parent_path());
  file_ = lock_of(resolved);
  for (;;) {
    FileHandle file = open_lock(file_);
    if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        throw ConfigError(cat(resolved.string(), ": expected no other run that is going to write it, got one",
                              holder_of(file), "; wait for its end, or name another folder"));
      ::unlink(file_.c_str());  // nothing can be locked here
      return;
    }
    if (!file.has_its_name()) continue;  // its last holder has removed it meanwhile
    name_holder(file);
    descriptor_ = file.release();
    recover_target(resolved, kind);
    return;
  }
}

OutputLock::~OutputLock() {
  if (descriptor_ < 0) return;
  ::unlink(file_.c_str());
  ::close(descriptor_);
}

}  // namespace lancet
