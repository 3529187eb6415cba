// The session's messages while it works: the last state for pages, lines for the terminal.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/reporter.h"

namespace lancet {

class ProgressBoard final : public Reporter {
 public:
  struct Hooks {
    std::function<void()> changed = {};
    std::function<bool()> wants_interruption = {};  ///< asks whether the running work should be cancelled
  };
  explicit ProgressBoard(Hooks hooks);

  ProgressStyle progress_style() const override;

  /// Clears the board before a piece of work.
  void clear();
  /// From now on progress is shown on pages, and no longer in the terminal.
  void leave_terminal() { is_at_terminal_ = false; }

  StageProgress now() const;
  std::vector<std::string> warnings() const;

 protected:
  void on_log(LogLevel level, std::string_view text) override;
  void on_progress(const StageProgress& progress) override;

 private:
  const Hooks hooks_;
  std::atomic<bool> is_at_terminal_{true};
  mutable std::mutex mutex_;
  StageProgress now_;
  std::vector<std::string> warnings_;
};

}  // namespace lancet
