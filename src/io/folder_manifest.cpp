#include "folder_manifest.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "leftovers.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Kind = FolderEntry::Kind;

constexpr std::string_view kFormat = "lancet-manifest-1";
/// An object, lists of text.
constexpr int kDeepestManifest = 4;

/// Null when it is not there or not valid: whoever asks does not count on it.
Json read_manifest(const fs::path& folder) {
  try {
    return parse_strict_json(MappedFile::open(folder / kManifestFile)->text(), kDeepestManifest);
  } catch (const CheckpointError&) {
    return {};
  } catch (const JsonProblem&) {
    return {};
  }
}

std::string text_at(const Json& json, const char* key) {
  if (!json.is_object()) return {};
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_manifest_of(const Json& json, std::string_view holds) {
  return text_at(json, "format") == kFormat && text_at(json, "holds") == holds;
}

WrittenFiles listed_files(const Json& manifest) {
  WrittenFiles files;
  if (const auto listed = manifest.find("files"); listed != manifest.end() && listed->is_array())
    for (const Json& file : *listed)
      if (file.is_string()) files.insert(file.get<std::string>());
  return files;
}

bool holds_written(const std::string& folder, const WrittenFiles& written) {
  const auto first = written.lower_bound(folder + "/");
  return first != written.end() && first->starts_with(folder + "/");
}

bool is_written(const FolderEntry& entry, const WrittenFiles& written) {
  if (entry.kind == Kind::kFolder) return holds_written(entry.path, written);
  if (entry.kind == Kind::kOther) return false;
  return entry.path == kManifestFile || written.contains(entry.path) || is_temporary_name(entry.name);
}

void write_json(const fs::path& folder, const Json& manifest) {
  write_text_file(folder / kManifestFile, manifest.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace

std::optional<WrittenFiles> read_written(const fs::path& folder, const OutputKind& kind) {
  const Json manifest = read_manifest(folder);
  return is_manifest_of(manifest, kind.name) ? std::optional(listed_files(manifest)) : std::nullopt;
}

void write_manifest(const fs::path& folder, const OutputKind& kind) {
  WrittenFiles files;
  for_each_entry(folder, [&](const FolderEntry& entry) {
    if (entry.kind == Kind::kFile && entry.path != kManifestFile) files.insert(entry.path);
  });
  write_json(folder, {{"format", kFormat}, {"holds", kind.name}, {"files", files}});
}

void write_marker(const fs::path& folder, std::string_view holds) {
  write_json(folder, {{"format", kFormat}, {"holds", holds}});
}

void note_written(const fs::path& folder, std::span<const fs::path> files) {
  Json manifest = read_manifest(folder);
  if (text_at(manifest, "format") != kFormat) return;
  WrittenFiles written = listed_files(manifest);
  const size_t listed = written.size();
  for (const fs::path& file : files)
    if (const fs::path relative = file.lexically_relative(folder); !relative.empty() && *relative.begin() != "..")
      written.insert(relative.generic_string());
  if (written.size() == listed) return;
  manifest["files"] = written;
  write_json(folder, manifest);
}

bool has_manifest_of(const fs::path& folder, std::string_view holds) {
  return is_manifest_of(read_manifest(folder), holds);
}

std::vector<std::string> foreign_entries(const fs::path& folder, const WrittenFiles& written) {
  std::vector<std::string> found;
  for_each_entry(folder, [&](const FolderEntry& entry) {
    if (!is_written(entry, written)) found.push_back(entry.path + (entry.kind == Kind::kFolder ? "/" : ""));
  });
  std::ranges::sort(found);
  std::vector<std::string> foreign;
  for (std::string& path : found)  // "a/" comes before "a/b"
    if (foreign.empty() || !foreign.back().ends_with('/') || !path.starts_with(foreign.back()))
      foreign.push_back(std::move(path));
  return foreign;
}

bool remove_written(const fs::path& folder, const WrittenFiles& written) {
  if (remove_entries(
          folder, [&](const FolderEntry& entry) { return entry.path != kManifestFile && is_written(entry, written); }))
    return true;
  try {
    if (folder_names(folder) != std::vector<std::string>{kManifestFile}) return false;
  } catch (const Error&) {
    return false;  // what cannot be listed stays
  }
  return remove_entries(folder, [](const FolderEntry& entry) { return entry.path == kManifestFile; });
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) shown.push_back(printable(names[i]));
  return cat(join(shown), names.size() > kShown ? cat(" and ", names.size() - kShown, " more") : "");
}

namespace {

[[noreturn]] void refuse_list(const FileHandle& folder) {
  const std::string problem = file_problem(folder.path(), "cannot list the folder", errno);
  if (errno == ENOMEM) throw PlacementError(problem);
  throw CheckpointError(problem);
}

/// Returns all names at once, because removing entries while a folder is read may hide other names.
std::vector<std::string> names_in(const FileHandle& folder) {
  const int own = ::fcntl(folder.descriptor(), F_DUPFD_CLOEXEC, 0);  // closing the stream closes its descriptor, too
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
      if (is_ours(entry))  // the system refuses to remove a folder that is not empty
        ::unlinkat(entry.parent, entry.name.c_str(), entry.kind == FolderEntry::Kind::kFolder ? AT_REMOVEDIR : 0);
    });
  } catch (const Error&) {
    // a folder that cannot be listed stays, and so do the folders around it
  }
  return ::rmdir(folder.c_str()) == 0 || errno == ENOENT;
}

}  // namespace lancet
