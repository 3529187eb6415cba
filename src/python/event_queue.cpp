#include "event_queue.h"

#include <utility>

namespace lancet::python {

ProgressStyle EventQueue::progress_style() const {
  switch (delivery_) {
    case Delivery::kNone:
      return ProgressStyle::kNone;
    case Delivery::kLines:
      return ProgressStyle::kLines;
    case Delivery::kQueued:
    case Delivery::kAwaited:
      return ProgressStyle::kLive;
  }
  return ProgressStyle::kNone;
}

std::vector<Event> EventQueue::take() {
  n_taken_ = n_told_;
  return std::exchange(events_, {});
}

void EventQueue::on_log(LogLevel level, std::string_view text) {
  const std::lock_guard lock(bell_.mutex);
  events_.push_back({.level = level, .text = std::string(text)});
  ++n_told_;
  bell_.rung.notify_all();
}

void EventQueue::on_progress(const StageProgress& progress) {
  std::unique_lock lock(bell_.mutex);
  events_.push_back({.progress = progress});
  const int64_t mine = ++n_told_;
  bell_.rung.notify_all();
  if (delivery_ == Delivery::kAwaited) bell_.rung.wait(lock, [&] { return is_abandoned_ || n_handled_ >= mine; });
}

}  // namespace lancet::python
