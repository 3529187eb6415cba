// Passes events from the working thread to the waiting thread. Nothing of Python is called here.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lancet/core/reporter.h"

namespace lancet::python {

/// A log line, or the progress of a stage.
struct Event {
  LogLevel level = LogLevel::kInfo;
  std::string text = {};
  std::optional<StageProgress> progress = {};
};

/// How progress reaches the waiting thread.
enum class Delivery {
  kNone,    ///< progress is not passed on, only log lines are queued
  kLines,   ///< rarely, like the lines on a stderr that is not a terminal
  kQueued,  ///< the work continues meanwhile
  kAwaited  ///< the work waits until the event was handled, so that the handler can end the work at this point
};

/// Shared by the waiting and the working thread: the lock for everything that both change, and the signal with which
/// one wakes the other.
struct Bell {
  std::mutex mutex;
  std::condition_variable rung;
};

class EventQueue final : public Reporter {
 public:
  EventQueue(Bell& bell, Delivery delivery) : bell_(bell), delivery_(delivery) {}

  ProgressStyle progress_style() const override;

  // Call these with the lock:
  bool empty() const { return events_.empty(); }
  std::vector<Event> take();
  /// Notes that the taken events were handled, so that waiting work continues.
  void handled() { n_handled_ = n_taken_; }
  /// From now on nobody takes events, or somebody does again.
  void abandon() { is_abandoned_ = true; }
  void attend() { is_abandoned_ = false; }

 protected:
  void on_log(LogLevel level, std::string_view text) override;
  void on_progress(const StageProgress& progress) override;

 private:
  Bell& bell_;
  Delivery delivery_;
  std::vector<Event> events_;
  int64_t n_told_ = 0, n_taken_ = 0, n_handled_ = 0;
  bool is_abandoned_ = true;
};

}  // namespace lancet::python
