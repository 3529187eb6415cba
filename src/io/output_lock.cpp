// A file ".<target>.lancet-lock" beside the target, locked and removed again. It names its holder, for the message.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <system_error>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "leftovers.h"
#include "output_target.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

FileHandle open_lock(const fs::path& path) {
  int descriptor = open_descriptor(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
  // Somebody else's leftover in a shared folder: locking needs no right to write.
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
  // For a message alone.
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
    if (!file.has_its_name()) continue;  // its last holder removed it meanwhile
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
