// Reports to the process's stderr: stdout is for results. On a terminal one line is redrawn; elsewhere there are plain
// lines at intervals.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "lancet/core/reporter.h"

namespace lancet {

enum class Verbosity {
  kQuiet,  ///< warnings and errors alone
  kNormal
};

/// Texts are shown as visible_text(). There is one: stderr is the process's.
class StderrReporter final : public Reporter {
 public:
  void set_verbosity(Verbosity verbosity) { verbosity_ = verbosity; }
  Verbosity verbosity() const { return verbosity_; }

  /// What errors begin with: "lancet: error: ".
  void set_error_prefix(std::string prefix);

  ProgressStyle progress_style() const override;

 protected:
  void on_log(LogLevel level, std::string_view text) override;
  void on_progress(const StageProgress& progress) override;

 private:
  friend StderrReporter& stderr_reporter();
  StderrReporter() = default;

  /// A line that is being redrawn makes room for a whole one.
  void write_line(std::string_view text);
  void redraw(std::string_view text);

  std::atomic<Verbosity> verbosity_{Verbosity::kNormal};
  std::mutex prefix_mutex_;
  std::string error_prefix_ = "lancet: error: ";
  bool is_line_open_ = false;
};

StderrReporter& stderr_reporter();

}  // namespace lancet
