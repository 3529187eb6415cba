// Who is told what work does, and who may end it. A Reporter is passed in where work begins (ReporterScope); from there
// on it is this thread's, and that of the threads which the work starts. Two pieces of work in one process have two.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

// The time as stages of work see it.

using StageTime = std::chrono::steady_clock::time_point;

StageTime stage_now();

/// Replaces the clock for tests; null: the steady clock again. Set while no stage lives.
void set_stage_clock(StageTime (*clock)());

class Heartbeat;

enum class LogLevel { kInfo, kWarning, kError };

/// How far a stage is.
struct StageProgress {
  std::string stage = {};  ///< "values"
  int64_t done = 0;        ///< part of `total`
  int64_t total = 0;       ///< 0: unknown
  std::string unit = {};   ///< "requests"; empty: the stage does not count
  std::string line = {};   ///< line for people with all that is known: "values  64/100 requests  3.1/s  12 s left"
  bool is_finished = false;
};

/// How often progress is told.
enum class ProgressStyle {
  kNone,
  kLines,  ///< a line when a stage begins to take long (10 s), every 10 s from then, and at its end
  kLive    ///< a line when a stage begins, then at most 10 times a second, and at its end
};

/// What is overridden is called from any thread, one call at a time. It must not throw, nor report anything itself.
class Reporter {
 public:
  virtual ~Reporter() = default;

  /// Looked at whenever progress is made.
  virtual ProgressStyle progress_style() const { return ProgressStyle::kLive; }

  void log(LogLevel level, std::string_view text);
  void show(const StageProgress& progress);

  /// Work that reports here ends at its next step with Cancelled. From any thread, also from within a call.
  void cancel() { is_cancelled_ = true; }
  /// What begins from here on runs.
  void resume() { is_cancelled_ = false; }
  bool is_cancelled() const { return is_cancelled_; }

  /// Says that work of any kind got on, for whoever watches for stalls.
  void count_step() { steps_.fetch_add(1, std::memory_order_relaxed); }
  int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  /// count_step() where work can be cancelled. Throws: Cancelled.
  void step();

 protected:
  virtual void on_log(LogLevel level, std::string_view text) = 0;
  virtual void on_progress(const StageProgress& progress) = 0;

 private:
  friend Heartbeat;

  void note_told();

  std::atomic<bool> is_cancelled_{false};
  std::atomic<int64_t> steps_{0};
  std::mutex calls_;                          ///< held while one of the above runs
  std::mutex mutex_;                          ///< guards what follows
  StageTime told_{};                          ///< time at which it was told something last
  std::vector<const Heartbeat*> heartbeats_;  ///< those that live, the oldest first
};

/// This thread's; the process's stderr (stderr_reporter()) where none was passed in.
Reporter& reporter();

/// Makes `to` this thread's reporter until its end. A thread that is started within takes it on with a scope of its
/// own.
class ReporterScope {
 public:
  explicit ReporterScope(Reporter& to);
  ~ReporterScope();
  ReporterScope(const ReporterScope&) = delete;
  ReporterScope& operator=(const ReporterScope&) = delete;

 private:
  Reporter* before_;
};

// What work says to this thread's reporter.
void log_line(std::string_view text);
void log_warning(std::string_view text);
void log_error(std::string_view text);

/// Reporter::step(), of whatever may take long and has no Progress. Throws: Cancelled.
void count_progress();

// Reports to the process's stderr: stdout is for results. On a terminal one line is redrawn; elsewhere there are plain
// lines at intervals.

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
