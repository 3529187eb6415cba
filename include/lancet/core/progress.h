// What the user sees while lancet works. On a terminal one line is redrawn; elsewhere plain lines at intervals.
// Everything goes to stderr: stdout is for results.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lancet/core/heartbeat.h"

namespace lancet {

enum class Verbosity { kQuiet, kNormal };

/// Process-wide; set once by the command line before work begins.
void set_verbosity(Verbosity verbosity);
Verbosity verbosity();

/// A line on stderr (not with kQuiet).
void log_line(std::string_view text);
/// A line that begins "warning: "; shown with kQuiet too.
void log_warning(std::string_view text);
/// A line that begins "lancet: error: ", or what set_error_prefix says.
void log_error(std::string_view text);
/// Process-wide; set once by the command line before work begins.
void set_error_prefix(std::string prefix);

/// Says that work of any kind got on, for whoever watches for stalls: whatever may take long counts its steps, as
/// Progress does. From any thread.
void count_progress();
/// Steps of all threads so far.
int64_t progress_count();

/// Progress of one stage: "values  64/100 requests  step 120/200  3.1/s  12 s left". Redrawn at most 10 times a second
/// on a terminal; elsewhere a line when the stage begins to take long (10 s) and every 10 s from then. Without any
/// progress for a minute a heartbeat is shown. The last line says how long the stage took. How much time is left is
/// said after two seconds, when a twentieth is done: before, the first piece's set-up is most of what was
/// measured.
class Progress {
 public:
  /// total 0: unknown.
  Progress(std::string stage, int64_t total, std::string unit);
  ~Progress();  ///< finishes
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// From any thread.
  void advance(int64_t done = 1);
  void set(int64_t done);
  /// Work done before this run, which began just now: it counts as done, but says nothing about the rate.
  void skip(int64_t done);
  /// The work as pieces that take about equally long, for a stage whose `total` is not done evenly: the time left is
  /// taken from them. `name`: shown too, "step 12/250"; empty: not shown.
  void measure_by(std::string name, int64_t pieces);
  /// More pieces than that, or fewer, turn out to be the work of this run.
  void expect_pieces(int64_t more);
  /// Pieces that turned out not to be needed count as done too: as many will be spared by the rest of the work.
  void advance_pieces(int64_t done = 1);
  /// Replaces the tail of the line: "loss 0.31".
  void note(std::string text);
  void finish();

 private:
  void draw();
  std::string line() const;
  /// Of this run's work; 0 where its end is not known.
  double share_done() const;

  std::string stage_;
  std::string unit_;
  std::string note_;
  std::string piece_;
  int64_t total_;
  int64_t done_ = 0;
  int64_t skipped_ = 0;
  int64_t pieces_ = 0;  ///< 0: `total` measures the work
  int64_t pieces_done_ = 0;
  bool finished_ = false;
  StageTime begun_ = stage_now();
  StageTime drawn_{};
  std::mutex mutex_;  ///< of all that changes
  std::optional<Heartbeat> heartbeat_;
};

/// "850 ms", "12.3 s", "4 min 10 s", "2 h 05 min".
std::string duration_text(double seconds);

}  // namespace lancet
