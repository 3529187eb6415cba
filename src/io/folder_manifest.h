// The list of files that lancet wrote into a folder. A folder belongs to lancet if it has this manifest, and nothing
// else in it is ever removed. Folders from before there were manifests are recognised by their record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lancet/io/output_folder.h"

namespace lancet {

inline constexpr const char* kManifestFile = "lancet-manifest.json";

/// Paths of files, relative to the folder.
using WrittenFiles = std::set<std::string>;

/// Returns nullopt if lancet did not write this folder, or if it is of another kind.
std::optional<WrittenFiles> read_written(const std::filesystem::path& folder, const OutputKind& kind);

/// Writes the manifest of all files that are in the folder now. Throws: CheckpointError.
void write_manifest(const std::filesystem::path& folder, const OutputKind& kind);
/// Writes a manifest without a list: other code knows which files belong to the folder. Throws: CheckpointError.
void write_marker(const std::filesystem::path& folder, std::string_view holds);
/// Whether there is a manifest with this `holds`.
bool has_manifest_of(const std::filesystem::path& folder, std::string_view holds);

/// Returns the names of all other entries in the folder, sorted. A folder that is completely foreign is given as
/// "name/", without its content. Throws: CheckpointError if the folder cannot be listed.
std::vector<std::string> foreign_entries(const std::filesystem::path& folder, const WrittenFiles& written);

/// Removes the written files, and the manifest last, so that an interrupted removal can be continued. Best effort.
/// Returns whether nothing is left.
bool remove_written(const std::filesystem::path& folder, const WrittenFiles& written);

/// Returns "a, b and 3 more".
std::string some_of(const std::vector<std::string>& names);

// The entries of a folder, listed and removed by descriptors, so that no symbolic link leads out of the folder.

struct FolderEntry {
  enum class Kind : uint8_t { kFile, kFolder, kOther };  ///< kOther: links, pipes, devices

  std::string path;  ///< path relative to the folder, with '/'
  Kind kind;
  int parent;        ///< descriptor of the folder that contains it
  std::string name;  ///< its name in that folder
};

/// Calls `visit` for everything in the folder, at any depth. The content of a folder comes before the folder. Entries
/// that are removed meanwhile are left out. Throws: CheckpointError if a folder cannot be listed.
void for_each_entry(const std::filesystem::path& folder, const std::function<void(const FolderEntry&)>& visit);

/// Removes the files for which `is_ours` is true, the folders for which it is true if they are empty then, and at last
/// the folder itself if nothing is left. Best effort: what cannot be removed stays. Returns whether the folder is gone.
bool remove_entries(const std::filesystem::path& folder, const std::function<bool(const FolderEntry&)>& is_ours);

}  // namespace lancet
