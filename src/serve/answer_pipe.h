// Lines of JSON from the model's thread to a connection's: a slow reader does not hold the model up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

namespace lancet {

class AnswerPipe {
 public:
  void put(const std::string& line) {
    {
      const std::lock_guard lock(mutex_);
      if (!is_closed_) lines_ += line + "\n";
    }
    change_.notify_all();
  }

  /// `last`: a line before the end. Only the first close counts.
  void close(const std::string& last) {
    {
      const std::lock_guard lock(mutex_);
      if (!is_closed_) lines_ += last + "\n";
      is_closed_ = true;
    }
    change_.notify_all();
  }

  struct Piece {
    std::string lines = {};  ///< empty: none came in time
    bool is_last = false;
  };
  Piece take(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    change_.wait_for(lock, longest, [this] { return !lines_.empty() || is_closed_; });
    Piece piece{std::move(lines_), is_closed_};
    lines_.clear();
    return piece;
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  std::string lines_;
  bool is_closed_ = false;
};

}  // namespace lancet
