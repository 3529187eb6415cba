#include "lancet/core/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <system_error>

namespace lancet {
namespace {

[[noreturn]] void fail(int error_number) { throw FileProblem(std::generic_category().message(error_number)); }

/// Closed when it goes.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) fail(errno);
  }
  ~Descriptor() { ::close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

std::string read_regular_file(const std::filesystem::path& path) {
  const Descriptor file(path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail(errno);
  if (S_ISDIR(status.st_mode)) throw FileProblem("is a folder, expected a file");
  if (!S_ISREG(status.st_mode)) throw FileProblem("is a pipe or a device, expected a file");
  std::string text;
  text.reserve(static_cast<size_t>(status.st_size));
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = ::read(file.number(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(errno);
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace lancet
