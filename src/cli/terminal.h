// What a person at a terminal has of a command: tables, text that no terminal obeys, and Ctrl-C.
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

/// Rows of cells in aligned columns; the first column to the left, the others to the right. Widths count UTF-8
/// characters.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// "99.0" from 0.99; "n/a" without a value.
std::string percent_text(std::optional<double> share);

/// A metric's mean: shares in percent, anything else with its unit.
std::string metric_text(const MetricRow& row, std::optional<double> mean);

/// "cpu 1.2 GB, cuda:0 30.5 GB".
std::string peaks_text(const PeakBytes& peaks);

/// One line, cut to `width` characters with "…".
std::string one_line(std::string text, size_t width);

// Tables of what was measured.

/// A row for each metric of `after`, which has the last column but one; empty when there is none.
std::string before_after_text(const Evaluation& before, const Evaluation& after, const char* after_head = "after");

/// A row for each cost, before and after; empty when there is none.
std::string side_effects_text(const SideEffectReport& before, const SideEffectReport& after);

// Standard output and error as a person may read them: nothing from a file or a model reaches a terminal as a control
// sequence, whatever command prints it.

/// Sends what is written to `stream` through visible_text(), while this lives.
class VisibleStream final : public std::streambuf {
 public:
  explicit VisibleStream(std::ostream& stream);
  ~VisibleStream() override;
  VisibleStream(const VisibleStream&) = delete;
  VisibleStream& operator=(const VisibleStream&) = delete;

  /// errno of the first write that failed; 0: none did, or it is not known.
  int error() const { return error_; }

 private:
  friend class ExactStream;
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;
  /// The first `count` bytes of what waits. False when the stream below refuses them.
  bool pass_on(size_t count);
  bool write_below(std::string_view text);
  bool flush_below();
  /// Whether it went well, by what errno was set to where it did not.
  bool noted(bool is_well);

  std::ostream& stream_;
  std::streambuf* below_;
  std::string waiting_;
  bool is_exact_ = false;  ///< lets bytes through as they are
  int error_ = 0;
};

/// Lets `stream` take bytes as they are, while this lives: output that is data, for a file or another program.
class ExactStream {
 public:
  explicit ExactStream(std::ostream& stream);
  ~ExactStream();
  ExactStream(const ExactStream&) = delete;
  ExactStream& operator=(const ExactStream&) = delete;

 private:
  VisibleStream* visible_;  ///< null: the stream takes them anyhow
};

// Ctrl-C, SIGTERM and SIGHUP: the program says that it stops and what is kept, and ends at once by the signal, also
// while a kernel runs for seconds. What it was writing never has its final name yet, and goes at the next run.

/// Ends the process on signals from here on. To be called before any thread begins: threads inherit which signals reach
/// them. A signal that is ignored (nohup) stays ignored; a second one ends the process without a word.
void end_on_signals();

/// What is said after "stopped by SIGINT (Ctrl-C)", as a clause; nullopt: nothing is said at all, since another
/// process of the job speaks. Called from another thread. Without it no more is known.
using StopWords = std::function<std::optional<std::string>()>;
void set_stop_words(StopWords words);

/// Stop words that refer to something: nobody calls them any more once this is gone.
class StopWordsWhile {
 public:
  explicit StopWordsWhile(StopWords words) { set_stop_words(std::move(words)); }
  ~StopWordsWhile() { set_stop_words({}); }
  StopWordsWhile(const StopWordsWhile&) = delete;
  StopWordsWhile& operator=(const StopWordsWhile&) = delete;
};

/// "SIGINT (Ctrl-C)".
std::string stop_signal_name(int signal);

}  // namespace lancet::cli
