#include "lancet/core/reporter.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

thread_local Reporter* of_this_thread = nullptr;

}  // namespace

void Reporter::log(LogLevel level, std::string_view text) {
  const std::lock_guard call(calls_);
  on_log(level, text);
  note_told();
}

void Reporter::show(const StageProgress& progress) {
  const std::lock_guard call(calls_);
  on_progress(progress);
  note_told();
}

void Reporter::note_told() {
  const std::lock_guard lock(mutex_);
  told_ = stage_now();
}

void Reporter::step() {
  count_step();
  if (is_cancelled()) throw Cancelled();
}

Reporter& reporter() { return of_this_thread != nullptr ? *of_this_thread : stderr_reporter(); }

ReporterScope::ReporterScope(Reporter& to) : before_(of_this_thread) { of_this_thread = &to; }

ReporterScope::~ReporterScope() { of_this_thread = before_; }

void log_line(std::string_view text) { reporter().log(LogLevel::kInfo, text); }

void log_warning(std::string_view text) { reporter().log(LogLevel::kWarning, text); }

void log_error(std::string_view text) { reporter().log(LogLevel::kError, text); }

void count_progress() { reporter().step(); }

namespace {

std::atomic<StageTime (*)()> clock_now{nullptr};

}  // namespace

StageTime stage_now() {
  const auto clock = clock_now.load();
  return clock == nullptr ? std::chrono::steady_clock::now() : clock();
}

void set_stage_clock(StageTime (*clock)()) { clock_now = clock; }

namespace {

bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

/// Cuts a line to the terminal's width. A longer one would wrap, and the next redraw would not remove its first part.
std::string fitted(std::string_view text) {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 4;
  return excerpt(visible_text(text), (is_known ? size.ws_col : 80U) - 4U);
}

/// Writes with one call, so that the lines of several processes on one terminal do not mix.
void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

void StderrReporter::set_error_prefix(std::string prefix) {
  const std::lock_guard lock(prefix_mutex_);
  error_prefix_ = std::move(prefix);
}

ProgressStyle StderrReporter::progress_style() const {
  if (verbosity() == Verbosity::kQuiet) return ProgressStyle::kNone;
  return is_terminal() ? ProgressStyle::kLive : ProgressStyle::kLines;
}

void StderrReporter::on_log(LogLevel level, std::string_view text) {
  if (level == LogLevel::kInfo) {
    if (verbosity() == Verbosity::kNormal) write_line(text);
  } else if (level == LogLevel::kWarning) {
    write_line(cat("warning: ", text));
  } else {
    const std::lock_guard lock(prefix_mutex_);
    write_line(cat(error_prefix_, text));
  }
}

void StderrReporter::on_progress(const StageProgress& progress) {
  if (progress.is_finished || !is_terminal())
    write_line(progress.line);
  else
    redraw(progress.line);
}

void StderrReporter::write_line(std::string_view text) {
  write(cat(is_line_open_ ? "\r\x1b[K" : "", visible_text(text), "\n"));
  is_line_open_ = false;
}

void StderrReporter::redraw(std::string_view text) {
  write(cat("\r\x1b[K", fitted(text)));
  is_line_open_ = true;
}

/// Never destroyed, because a thread that ends the process on a signal may report after main() has returned.
StderrReporter& stderr_reporter() {
  static auto& one = *new StderrReporter;
  return one;
}

}  // namespace lancet
