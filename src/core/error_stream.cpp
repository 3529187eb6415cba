#include "error_stream.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "lancet/core/strings.h"
#include "lancet/core/visible_text.h"

namespace lancet {
namespace {

/// A line longer than the terminal is wide would wrap, and the next redraw would leave its first part standing.
std::string fitted(std::string_view text) {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 4;
  return excerpt(visible_text(text), (is_known ? size.ws_col : 80U) - 4U);
}

}  // namespace

bool ErrorStream::is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

void ErrorStream::write_line(std::string_view text) {
  const std::lock_guard lock(mutex_);
  write(cat(erase(), visible_text(text), "\n"));
  is_line_open_ = false;
}

void ErrorStream::redraw(std::string_view text) {
  const std::lock_guard lock(mutex_);
  write(cat("\r\x1b[K", fitted(text)));
  is_line_open_ = true;
}

void ErrorStream::show(std::string_view text) { is_terminal() ? redraw(text) : write_line(text); }

StageTime ErrorStream::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

/// One write for all, so that lines of several processes on one terminal do not mix.
void ErrorStream::write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  written_ = stage_now();
}

ErrorStream& error_stream() {
  static ErrorStream stream;
  return stream;
}

}  // namespace lancet
