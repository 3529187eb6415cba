// stderr, shared by log lines, the progress line and heartbeats.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "lancet/core/heartbeat.h"

namespace lancet {

/// A line that is being redrawn makes room for a whole line. Texts are shown as visible_text().
class ErrorStream {
 public:
  static bool is_terminal();

  void write_line(std::string_view text);
  /// On a terminal: in place of the line that was drawn last.
  void redraw(std::string_view text);
  /// redraw() on a terminal, write_line() elsewhere.
  void show(std::string_view text);

  /// When something was written last.
  StageTime written() const;

 private:
  std::string_view erase() const { return is_line_open_ ? "\r\x1b[K" : ""; }
  void write(const std::string& text);

  mutable std::mutex mutex_;
  bool is_line_open_ = false;
  StageTime written_{};
};

ErrorStream& error_stream();

}  // namespace lancet
