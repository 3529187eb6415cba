#include "lancet/core/reporter.h"

#include "lancet/core/error.h"
#include "lancet/core/stderr_reporter.h"

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

}  // namespace lancet
