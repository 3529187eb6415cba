// Receives the messages and the progress of work, and can cancel it. A caller passes a Reporter in where work begins
// (ReporterScope). From there on it is the reporter of this thread and of the threads that the work starts. Two pieces
// of work in one process can have two reporters.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

// The clock of stages of work.

using StageTime = std::chrono::steady_clock::time_point;

StageTime stage_now();

/// Replaces the clock in tests; null restores the steady clock. Call it only while no stage lives.
void set_stage_clock(StageTime (*clock)());

class Heartbeat;

enum class LogLevel { kInfo, kWarning, kError };

/// How far a stage has got.
struct StageProgress {
  std::string stage = {};  ///< "values"
  int64_t done = 0;        ///< part of `total`
  int64_t total = 0;       ///< 0: unknown
  std::string unit = {};   ///< "requests"; empty: the stage does not count
  std::string line = {};   ///< a line for people with all of this: "values  64/100 requests  3.1/s  12 s left"
  bool is_finished = false;
};

/// How often progress is reported.
enum class ProgressStyle {
  kNone,
  kLines,  ///< a line when a stage has run for 10 s, then every 10 s, and at its end
  kLive    ///< a line when a stage begins, then at most 10 times a second, and at its end
};

/// The overridden functions are called from any thread, one call at a time. They must not throw or report anything
/// themselves.
class Reporter {
 public:
  virtual ~Reporter() = default;

  /// Read whenever progress is made.
  virtual ProgressStyle progress_style() const { return ProgressStyle::kLive; }

  void log(LogLevel level, std::string_view text);
  void show(const StageProgress& progress);

  /// Cancels: work that reports here ends with Cancelled at its next step. May be called from any thread, also from
  /// within an overridden function.
  void cancel() { is_cancelled_ = true; }
  /// Ends the cancelled state: work that begins from now on runs.
  void resume() { is_cancelled_ = false; }
  bool is_cancelled() const { return is_cancelled_; }

  /// Counts a step of work of any kind, for a watchdog that looks for stalls.
  void count_step() { steps_.fetch_add(1, std::memory_order_relaxed); }
  int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  /// Calls count_step() at a place where work can be cancelled. Throws: Cancelled.
  void step();

 protected:
  virtual void on_log(LogLevel level, std::string_view text) = 0;
  virtual void on_progress(const StageProgress& progress) = 0;

 private:
  friend Heartbeat;

  void note_told();

  std::atomic<bool> is_cancelled_{false};
  std::atomic<int64_t> steps_{0};
  std::mutex calls_;                          ///< held while an overridden function runs
  std::mutex mutex_;                          ///< guards the members below
  StageTime told_{};                          ///< time of the last report
  std::vector<const Heartbeat*> heartbeats_;  ///< live heartbeats, the oldest first
};

/// Returns this thread's reporter; stderr_reporter() if none was passed in.
Reporter& reporter();

/// Makes `to` this thread's reporter until the scope ends. A thread that is started within the scope needs a scope of
/// its own.
class ReporterScope {
 public:
  explicit ReporterScope(Reporter& to);
  ~ReporterScope();
  ReporterScope(const ReporterScope&) = delete;
  ReporterScope& operator=(const ReporterScope&) = delete;

 private:
  Reporter* before_;
};

// These report to this thread's reporter.
void log_line(std::string_view text);
void log_warning(std::string_view text);
void log_error(std::string_view text);

/// Calls Reporter::step(), for work that may take long and has no Progress. Throws: Cancelled.
void count_progress();

// Reports to the process's stderr, since stdout is for results. On a terminal one line is redrawn; elsewhere plain
// lines are written at intervals.

enum class Verbosity {
  kQuiet,  ///< warnings and errors alone
  kNormal
};

/// Shows texts as visible_text() returns them. There is one instance, since a process has one stderr.
class StderrReporter final : public Reporter {
 public:
  void set_verbosity(Verbosity verbosity) { verbosity_ = verbosity; }
  Verbosity verbosity() const { return verbosity_; }

  /// Sets the prefix of errors: "lancet: error: ".
  void set_error_prefix(std::string prefix);

  ProgressStyle progress_style() const override;

 protected:
  void on_log(LogLevel level, std::string_view text) override;
  void on_progress(const StageProgress& progress) override;

 private:
  friend StderrReporter& stderr_reporter();
  StderrReporter() = default;

  /// Writes a whole line; it first clears a line that is being redrawn.
  void write_line(std::string_view text);
  void redraw(std::string_view text);

  std::atomic<Verbosity> verbosity_{Verbosity::kNormal};
  std::mutex prefix_mutex_;
  std::string error_prefix_ = "lancet: error: ";
  bool is_line_open_ = false;
};

StderrReporter& stderr_reporter();

}  // namespace lancet
