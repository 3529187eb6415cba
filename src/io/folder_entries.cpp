#include "folder_entries.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_list(const FileHandle& folder) {
  const std::string problem = file_problem(folder.path(), "cannot list the folder", errno);
  if (errno == ENOMEM) throw PlacementError(problem);
  throw CheckpointError(problem);
}

/// All at once: what is removed while a folder is read may hide other names.
std::vector<std::string> names_in(const FileHandle& folder) {
  const int own = ::fcntl(folder.descriptor(), F_DUPFD_CLOEXEC, 0);  // the stream takes its descriptor with it
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(own < 0 ? nullptr : ::fdopendir(own), ::closedir);
  if (!stream) refuse_list(folder);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get()))
    if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
  if (errno != 0) refuse_list(folder);
  return names;
}

void visit_folder(const FileHandle& folder, const std::string& prefix,
                  const std::function<void(const FolderEntry&)>& visit) {
  using Kind = FolderEntry::Kind;
  for (const std::string& name : names_in(folder)) {
    struct stat status {};
    if (::fstatat(folder.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      throw CheckpointError(file_problem(folder.path() / name, "cannot stat", errno));
    }
    const FolderEntry entry{
        prefix + name, S_ISDIR(status.st_mode) ? Kind::kFolder : (S_ISREG(status.st_mode) ? Kind::kFile : Kind::kOther),
        folder.descriptor(), name};
    if (entry.kind == Kind::kFolder) {
      const int inner = open_descriptor(folder.descriptor(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
      if (inner >= 0)
        visit_folder(FileHandle(inner, folder.path() / name), entry.path + "/", visit);
      else if (errno != ENOENT)
        throw CheckpointError(file_problem(folder.path() / name, "cannot open the folder", errno));
    }
    visit(entry);
  }
}

}  // namespace

std::vector<std::string> folder_names(const fs::path& folder) {
  std::vector<std::string> names = names_in(FileHandle::open_folder(folder));
  std::ranges::sort(names);
  return names;
}

void for_each_entry(const fs::path& folder, const std::function<void(const FolderEntry&)>& visit) {
  visit_folder(FileHandle::open_folder(folder), "", visit);
}

bool remove_entries(const fs::path& folder, const std::function<bool(const FolderEntry&)>& is_ours) {
  try {
    for_each_entry(folder, [&](const FolderEntry& entry) {
      if (is_ours(entry))  // a folder that is not empty refuses
        ::unlinkat(entry.parent, entry.name.c_str(), entry.kind == FolderEntry::Kind::kFolder ? AT_REMOVEDIR : 0);
    });
  } catch (const Error&) {
    // a folder that cannot be listed stays, and so does what it lies in
  }
  return ::rmdir(folder.c_str()) == 0 || errno == ENOENT;
}

}  // namespace lancet
