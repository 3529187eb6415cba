// Lines from the model's thread to the thread of a connection. A slow reader does not delay the model.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "lancet/http/http_message.h"

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

  /// `last`: a line before the end. Only the first call of close() has an effect.
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

/// The time between two checks whether somebody still waits for the answer.
inline constexpr std::chrono::milliseconds kLook{250};

/// Returns everything up to the end; nullopt if nobody waits for it any more. `is_awaited`: empty if somebody always
/// waits.
inline std::optional<std::string> take_all(AnswerPipe& pipe, const std::function<bool()>& is_awaited) {
  std::string all;
  for (;;) {
    const AnswerPipe::Piece piece = pipe.take(kLook);
    all += piece.lines;
    if (piece.is_last) return all;
    if (is_awaited && !is_awaited()) return std::nullopt;
  }
}

/// Writes everything up to the end. Returns false if nobody reads it any more.
inline bool pass_on(AnswerPipe& pipe, const ReplySink& sink) {
  bool is_read = true;
  for (bool is_over = false; is_read && !is_over;) {
    const AnswerPipe::Piece piece = pipe.take(kLook);
    is_over = piece.is_last;
    is_read = piece.lines.empty() ? sink.is_read() : sink.write(piece.lines);
  }
  return is_read;
}

}  // namespace lancet
