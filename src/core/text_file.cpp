#include "lancet/core/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

std::string cause_of(int error_number) { return std::generic_category().message(error_number); }

bool is_own_descriptor(const std::filesystem::path& path) {
  const std::string name = path.string();
  return name == "/dev/stdin" || name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/");
}

/// Returns why the file cannot be read; empty if it can.
std::string problem_with(const struct stat& status, bool is_own) {
  if (S_ISDIR(status.st_mode)) return "is a folder, expected a file";
  if (S_ISREG(status.st_mode) || is_own) return {};
  return "is a pipe or a device, expected a regular file; write its content to one, or give it as /dev/stdin";
}

}  // namespace

OpenFile::OpenFile(const std::filesystem::path& path) {
  const bool is_own = is_own_descriptor(path);
  do {
    // without O_NONBLOCK, opening a named pipe would wait for a writer, before it can be refused
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (is_own ? 0 : O_NONBLOCK));
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw FileProblem(cause_of(errno));
  struct stat status {};
  const std::string problem = ::fstat(descriptor_, &status) != 0 ? cause_of(errno) : problem_with(status, is_own);
  if (!problem.empty()) {
    ::close(descriptor_);
    throw FileProblem(problem);
  }
  if (S_ISREG(status.st_mode)) size_bytes_ = static_cast<uint64_t>(status.st_size);
}

OpenFile::~OpenFile() { ::close(descriptor_); }

size_t OpenFile::read(std::span<char> to) {
  for (;;) {
    const ssize_t got = ::read(descriptor_, to.data(), to.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) throw FileProblem(cause_of(errno));
  }
}

std::string load_text(const std::filesystem::path& path, uint64_t most_bytes) {
  OpenFile file(path);
  const auto check_size = [&](uint64_t size_bytes) {
    if (size_bytes > most_bytes)
      throw FileProblem(cat("expected at most ", bytes_text(most_bytes), ", got ",
                            size_bytes == file.size_bytes() ? bytes_text(size_bytes) : "more",
                            "; divide the file, or check that it is the right one"));
  };
  check_size(file.size_bytes());
  std::string text;
  text.reserve(file.size_bytes());
  std::array<char, 1 << 16> buffer;
  while (const size_t got = file.read(buffer)) {
    check_size(text.size() + got);
    text.append(buffer.data(), got);
  }
  return text;
}

}  // namespace lancet
