// Whether a path still names the file that it named, as it was then: without reading it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace lancet {

struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t size_bytes = 0;
  int64_t written_ns = 0;  ///< mtime
  int64_t changed_ns = 0;  ///< ctime: nobody can set it back

  bool operator==(const FileIdentity&) const = default;
};

/// Throws: CheckpointError where no file is there.
FileIdentity identify_file(const std::filesystem::path& path);

}  // namespace lancet
