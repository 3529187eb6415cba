// A folder for files that a benchmark maps; it is removed at the end, and what is mapped stays readable.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet::bench {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "lancet-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw ConfigError(cat(name, ": cannot make a temporary folder: set TMPDIR"));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace lancet::bench
