// Counts changes of what pages show, so that they can wait for the next one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace lancet {

class StateClock {
 public:
  void advance() {
    {
      const std::lock_guard lock(mutex_);
      ++now_;
    }
    change_.notify_all();
  }

  /// The number after `seen`, or what it is after `longest`, or at the end.
  int64_t wait_beyond(int64_t seen, std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    change_.wait_for(lock, longest, [&] { return now_ != seen || is_over_; });
    return now_;
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    change_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  int64_t now_ = 1;
  bool is_over_ = false;
};

}  // namespace lancet
