// Files of text, whole or piece by piece. Nothing that is opened can hang, and nothing is read without end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>

namespace lancet {

/// Why a file cannot be read: "No such file or directory". Callers say which file, as an error of their own.
class FileProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A regular file, or one of the process's own descriptors, as a shell names them: /dev/stdin, /dev/fd/N. Others' pipes
/// and devices are refused: one without a writer would never end. What a signal interrupts is tried again.
class OpenFile {
 public:
  /// Throws: FileProblem.
  explicit OpenFile(const std::filesystem::path& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// 0: not a regular file.
  uint64_t size_bytes() const { return size_bytes_; }

  /// How many bytes there were; 0 at the end. Throws: FileProblem.
  size_t read(std::span<char> to);

 private:
  int descriptor_;
  uint64_t size_bytes_ = 0;
};

/// All of an OpenFile. Throws: FileProblem, also for more than `most_bytes`.
std::string load_text(const std::filesystem::path& path, uint64_t most_bytes);

}  // namespace lancet
