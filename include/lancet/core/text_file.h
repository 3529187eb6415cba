// Whole files as text. Nothing that is opened can hang, and nothing is read without end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace lancet {

/// Why a file cannot be read: "No such file or directory". Callers say which file, as an error of their own.
class FileProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A regular file, or one of the process's own descriptors, as a shell names them: /dev/stdin, /dev/fd/N. Others' pipes
/// and devices are refused: one without a writer would never end.
/// Throws: FileProblem, also for more than `most_bytes`.
std::string load_text(const std::filesystem::path& path, uint64_t most_bytes);

/// Throws: FileProblem as load_text() would before it reads; for files that are read piece by piece.
void check_readable(const std::filesystem::path& path);

}  // namespace lancet
