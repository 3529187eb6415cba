#include "lancet/io/file_identity.h"

#include <sys/stat.h>

#include <cerrno>

#include "lancet/core/error.h"
#include "lancet/io/file_handle.h"

namespace lancet {

FileIdentity identify_file(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw CheckpointError(file_problem(path, "cannot stat", errno));
  const auto nanoseconds = [](const timespec& time) { return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec; };
  return {status.st_dev, status.st_ino, status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

}  // namespace lancet
