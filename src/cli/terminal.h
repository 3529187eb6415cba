// Output for a person at a terminal: tables, text without control sequences, and Ctrl-C.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "lancet/eval/evaluate.h"
#include "lancet/eval/metrics.h"
#include "lancet/eval/side_effects.h"
#include "lancet/runtime/memory.h"

namespace lancet::cli {

// Plain text tables for people.

/// Formats rows of cells in aligned columns: the first column to the left, the others to the right. Widths count UTF-8
/// characters.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// Returns "99.0" for 0.99; "n/a" without a value.
std::string percent_text(std::optional<double> share);

/// Returns a metric's mean: shares in percent, others with their unit.
std::string metric_text(const MetricRow& row, std::optional<double> mean);

/// Returns "cpu 1.2 GB, cuda:0 30.5 GB".
std::string peaks_text(const PeakBytes& peaks);

/// Returns one line, cut to `width` characters with "…".
std::string one_line(std::string text, size_t width);

// Tables of measurements.

/// Returns a row for each metric of `after`, whose values are in the last column but one; empty if there are no
/// metrics.
std::string before_after_text(const Evaluation& before, const Evaluation& after, const char* after_head = "after");

/// Returns a row for each side effect, before and after; empty if there are none.
std::string side_effects_text(const SideEffectReport& before, const SideEffectReport& after);

// Standard output and error without control sequences: no text from a file or a model controls the terminal, whatever
// command prints it.

/// Passes everything that is written to `stream` through visible_text(), during the lifetime of this object.
class VisibleStream final : public std::streambuf {
 public:
  explicit VisibleStream(std::ostream& stream);
  ~VisibleStream() override;
  VisibleStream(const VisibleStream&) = delete;
  VisibleStream& operator=(const VisibleStream&) = delete;

  /// Returns errno of the first failed write; 0 if none failed, or if it is not known.
  int error() const { return error_; }

 private:
  friend class ExactStream;
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;
  /// Writes the first `count` waiting bytes. Returns false if the stream below refuses them.
  bool pass_on(size_t count);
  bool write_below(std::string_view text);
  bool flush_below();
  /// Notes errno if `is_well` is false. Returns `is_well`.
  bool noted(bool is_well);

  std::ostream& stream_;
  std::streambuf* below_;
  std::string waiting_;
  bool is_exact_ = false;  ///< writes bytes unchanged
  int error_ = 0;
};

/// Lets `stream` write bytes unchanged during the lifetime of this object: for output that is data for a file or
/// another program.
class ExactStream {
 public:
  explicit ExactStream(std::ostream& stream);
  ~ExactStream();
  ExactStream(const ExactStream&) = delete;
  ExactStream& operator=(const ExactStream&) = delete;

 private:
  VisibleStream* visible_;  ///< null: the stream writes them unchanged anyway
};

// Ctrl-C, SIGTERM and SIGHUP: the program says that it stops and what is kept, and is ended by the signal at once, also
// while a kernel runs for seconds. A file that is being written does not have its final name yet; the next run removes
// it.

/// From now on, signals end the process. Call it before any thread begins, because threads inherit which signals reach
/// them. An ignored signal (nohup) stays ignored. A second signal ends the process without a message.
void end_on_signals();

/// Returns the clause that follows "stopped by SIGINT (Ctrl-C)"; nullopt: nothing is printed, because another process
/// of the job prints it. It is called from another thread. Without this function the message has no clause.
using StopWords = std::function<std::optional<std::string>()>;
void set_stop_words(StopWords words);

/// Sets stop words that refer to other objects. After the destructor they are no longer called.
class StopWordsWhile {
 public:
  explicit StopWordsWhile(StopWords words) { set_stop_words(std::move(words)); }
  ~StopWordsWhile() { set_stop_words({}); }
  StopWordsWhile(const StopWordsWhile&) = delete;
  StopWordsWhile& operator=(const StopWordsWhile&) = delete;
};

/// Returns "SIGINT (Ctrl-C)".
std::string stop_signal_name(int signal);

}  // namespace lancet::cli
