// Bytes from file to file, by the kernel where it can.
#pragma once

#include <cstdint>

#include "lancet/io/file_handle.h"

namespace lancet {

/// `length` bytes of an open file at `offset`.
struct FileRange {
  int descriptor;
  const std::filesystem::path& path;
  uint64_t offset;
  uint64_t length;
};

/// Copies to the current end of `to`, and begins to write it out to the disk, so that a later sync finds little left.
/// In the kernel; through a small buffer where the two files lie on file systems between which it cannot.
/// Throws: CheckpointError, also when the file ends before the range does.
void append_range(const FileRange& from, FileHandle& to);

/// Makes the empty `to` share the whole file's blocks until one of the two changes (btrfs, XFS): costs no time and no
/// space. False where the file system cannot.
bool clone_file(int from_descriptor, FileHandle& to);

}  // namespace lancet
