// What lies in a folder, looked at and taken away by descriptors: no symbolic link leads out of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace lancet {

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
