#include "lancet/core/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
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

class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path) {
    const bool is_own = is_own_descriptor(path);
    do {
      // O_NONBLOCK: opening a named pipe would otherwise wait for a writer before it can be refused.
      descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (is_own ? 0 : O_NONBLOCK));
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) throw FileProblem(cause_of(errno));
    check(is_own);
  }
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  uint64_t size_bytes() const { return size_bytes_; }

  /// How many bytes there were; 0 at the end.
  size_t read(std::span<char> to) {
    for (;;) {
      const ssize_t got = ::read(descriptor_, to.data(), to.size());
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) throw FileProblem(cause_of(errno));
    }
  }

 private:
  void check(bool is_own) {
    struct stat status {};
    std::string problem;
    if (::fstat(descriptor_, &status) != 0)
      problem = cause_of(errno);
    else if (S_ISDIR(status.st_mode))
      problem = "is a folder, expected a file";
    else if (!S_ISREG(status.st_mode) && !is_own)
      problem = "is a pipe or a device, expected a regular file; write its content to one, or give it as /dev/stdin";
    size_bytes_ = S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
    if (problem.empty()) return;
    ::close(descriptor_);
    throw FileProblem(problem);
  }

  int descriptor_;
  uint64_t size_bytes_ = 0;
};

}  // namespace

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

void check_readable(const std::filesystem::path& path) { OpenFile{path}; }

}  // namespace lancet
