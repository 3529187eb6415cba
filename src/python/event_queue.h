// What work says, on its way from the thread that works to the thread that waits: nothing of Python is called here.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lancet/core/reporter.h"

namespace lancet::python {

/// A log line, or how far a stage is.
struct Event {
  LogLevel level = LogLevel::kInfo;
  std::string text = {};
  std::optional<StageProgress> progress = {};
};

/// How progress reaches the thread that waits.
enum class Delivery {
  kNone,    ///< progress reaches nobody; log lines are queued
  kLines,   ///< lines like those of a stderr that is no terminal: rarely
  kQueued,  ///< the work goes on meanwhile
  kAwaited  ///< the work goes on when it was handled, so that whoever handles it can end the work right there
};

/// What the thread that waits and the one that works share: the lock of all that either changes, and how one wakes the
/// other.
struct Bell {
  std::mutex mutex;
  std::condition_variable rung;
};

class EventQueue final : public Reporter {
 public:
  EventQueue(Bell& bell, Delivery delivery) : bell_(bell), delivery_(delivery) {}

  ProgressStyle progress_style() const override;

  // With the bell's lock held:
  bool empty() const { return events_.empty(); }
  std::vector<Event> take();
  /// What was taken is handled: the work that awaited it goes on.
  void handled() { n_handled_ = n_taken_; }
  /// Nobody takes events from here on, or somebody does again.
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
