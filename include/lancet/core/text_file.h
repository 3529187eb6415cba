// Reads text files, whole or piece by piece. Opening a file never hangs, and the amount that is read is limited.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>

namespace lancet {

/// Says why a file cannot be read: "No such file or directory". Callers name the file in an error of their own.
class FileProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A regular file, or one of the process's own descriptors, by the names of the shell: /dev/stdin, /dev/fd/N. Other
/// pipes and devices are refused, since one without a writer would never end. Interrupted reads are repeated.
class OpenFile {
 public:
  /// Throws: FileProblem.
  explicit OpenFile(const std::filesystem::path& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// Returns the size; 0 if it is not a regular file.
  uint64_t size_bytes() const { return size_bytes_; }

  /// Reads and returns the number of bytes; 0 at the end. Throws: FileProblem.
  size_t read(std::span<char> to);

 private:
  int descriptor_;
  uint64_t size_bytes_ = 0;
};

/// Reads a whole file with OpenFile. Throws: FileProblem, also for more than `most_bytes`.
std::string load_text(const std::filesystem::path& path, uint64_t most_bytes);

}  // namespace lancet
