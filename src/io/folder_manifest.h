// What lancet wrote into a folder, by name. A folder counts as lancet's by its manifest, and nothing else in it is ever
// taken away.
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

/// Paths of files, from the folder on.
using WrittenFiles = std::set<std::string>;

/// nullopt: lancet did not write this folder, or it is not of this kind.
std::optional<WrittenFiles> read_written(const std::filesystem::path& folder, const OutputKind& kind);

/// The manifest of all files that are in the folder now. Throws: CheckpointError.
void write_manifest(const std::filesystem::path& folder, const OutputKind& kind);
/// A manifest that lists nothing: what belongs there shows by other means. Throws: CheckpointError.
void write_marker(const std::filesystem::path& folder, std::string_view holds);
/// Whether the manifest says so.
bool has_manifest_of(const std::filesystem::path& folder, std::string_view holds);

/// What is in the folder besides, in the order of names; a folder that is foreign as a whole comes as "name/", without
/// what it holds. Throws: CheckpointError when the folder cannot be looked through.
std::vector<std::string> foreign_entries(const std::filesystem::path& folder, const WrittenFiles& written);

/// Removes what was written, the manifest last: a removal that is cut short can be gone on with. Best effort. Returns
/// whether nothing is left.
bool remove_written(const std::filesystem::path& folder, const WrittenFiles& written);

/// "a, b and 3 more".
std::string some_of(const std::vector<std::string>& names);

// What lies in a folder, looked at and taken away by descriptors: no symbolic link leads out of it.

struct FolderEntry {
  enum class Kind : uint8_t { kFile, kFolder, kOther };  ///< kOther: links, pipes, devices

  std::string path;  ///< path from the folder on, with '/'
  Kind kind;
  int parent;        ///< descriptor of the folder that it lies in
  std::string name;  ///< there
};

/// Calls `visit` for everything in the folder, at any depth; what a folder holds comes before it. What goes away
/// meanwhile is left out. Throws: CheckpointError when a folder cannot be listed.
void for_each_entry(const std::filesystem::path& folder, const std::function<void(const FolderEntry&)>& visit);

/// Removes the files that `is_ours` names and the folders that are empty then and for which it is true too; at last the
/// folder itself where nothing is left. Best effort: what cannot be removed stays. Returns whether the folder is gone.
bool remove_entries(const std::filesystem::path& folder, const std::function<bool(const FolderEntry&)>& is_ours);

}  // namespace lancet
