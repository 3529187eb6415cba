// A whole file that belongs to a model, for those who throw errors of their own.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace lancet {

/// Why a file cannot be read, in words: "No such file or directory", "is a folder".
class FileProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Its bytes; symbolic links are followed. Never waits, as opening a named pipe would. Throws: FileProblem.
std::string read_regular_file(const std::filesystem::path& path);

}  // namespace lancet
