#include "progress_board.h"

#include <utility>

#include "lancet/core/reporter.h"

namespace lancet {

ProgressBoard::ProgressBoard(Hooks hooks) : hooks_(std::move(hooks)) {}

ProgressStyle ProgressBoard::progress_style() const {
  return is_at_terminal_ ? stderr_reporter().progress_style() : ProgressStyle::kLive;
}

void ProgressBoard::clear() {
  const std::lock_guard lock(mutex_);
  now_ = {};
  warnings_.clear();
}

StageProgress ProgressBoard::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

std::vector<std::string> ProgressBoard::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

void ProgressBoard::on_log(LogLevel level, std::string_view text) {
  stderr_reporter().log(level, text);
  if (level == LogLevel::kInfo) return;
  const std::lock_guard lock(mutex_);
  warnings_.emplace_back(text);
}

void ProgressBoard::on_progress(const StageProgress& progress) {
  if (is_at_terminal_) return stderr_reporter().show(progress);
  // at the beginning of a call, a session forgets earlier cancellations
  if (hooks_.wants_interruption()) cancel();
  {
    const std::lock_guard lock(mutex_);
    now_ = progress;
  }
  hooks_.changed();
}

}  // namespace lancet
