#include "terminal.h"

#include <pthread.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"

namespace lancet::cli {

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], count_characters(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - count_characters(row[i]), ' ');
      line += (i == 0 ? "  " : "   ") + (i == 0 ? row[i] + padding : padding + row[i]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

std::string percent_text(std::optional<double> share) {
  if (!share) return "n/a";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", 100.0 * *share);
  return text.data();
}

std::string metric_text(const MetricRow& row, std::optional<double> mean) {
  if (!mean || row.unit == Unit::kShare || row.unit == Unit::kDifference) return percent_text(mean);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", *mean);
  return cat(text.data(), " ", unit_name(row.unit));
}

std::string peaks_text(const PeakBytes& peaks) {
  std::vector<std::string> parts;
  for (const auto& [device, bytes] : peaks) parts.push_back(cat(device, " ", bytes_text(static_cast<uint64_t>(bytes))));
  return join(parts);
}

std::string one_line(std::string text, size_t width) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (count_characters(text) <= width) return text;
  return text.substr(0, bytes_of_characters(text, width - 1)) + "…";
}

namespace {

std::string before_and_after(std::vector<std::string> head, const std::vector<MetricRow>& metrics,
                             const Tallies& before, const Tallies& after) {
  if (metrics.empty()) return {};
  std::vector<std::vector<std::string>> rows{std::move(head)};
  for (const MetricRow& row : metrics) {
    const Tally& now = after.find(row.name)->second;
    rows.push_back({row.name, metric_text(row, before.find(row.name)->second.mean()), metric_text(row, now.mean()),
                    std::to_string(now.count)});
  }
  return format_table(rows);
}

}  // namespace

std::string before_after_text(const Evaluation& before, const Evaluation& after, const char* after_head) {
  return before_and_after({"metric, %", "before", after_head, "prompts"}, after.metrics, before.totals, after.totals);
}

std::string side_effects_text(const SideEffectReport& before, const SideEffectReport& after) {
  return before_and_after({"elsewhere, %", "before", "after", "of"}, after.metrics, before.totals, after.totals);
}

VisibleStream::VisibleStream(std::ostream& stream) : stream_(stream), below_(stream.rdbuf(this)) {}

VisibleStream::~VisibleStream() {
  const bool is_whole = pass_on(waiting_.size()) && flush_below();
  stream_.rdbuf(below_);  // also clears the stream's state
  if (!is_whole) stream_.setstate(std::ios::badbit);
}

bool VisibleStream::pass_on(size_t count) {
  const std::string shown = visible_text(std::string_view(waiting_).substr(0, count));
  waiting_.erase(0, count);
  return write_below(shown);
}

bool VisibleStream::write_below(std::string_view text) {
  errno = 0;
  const auto size = static_cast<std::streamsize>(text.size());
  return noted(below_->sputn(text.data(), size) == size);
}

bool VisibleStream::flush_below() {
  errno = 0;
  return noted(below_->pubsync() == 0);
}

bool VisibleStream::noted(bool is_well) {
  if (!is_well && error_ == 0) error_ = errno;
  return is_well;
}

VisibleStream::int_type VisibleStream::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char one = traits_type::to_char_type(character);
  return xsputn(&one, 1) == 1 ? character : traits_type::eof();
}

std::streamsize VisibleStream::xsputn(const char* text, std::streamsize count) {
  if (is_exact_) return write_below({text, static_cast<size_t>(count)}) ? count : 0;
  waiting_.append(text, static_cast<size_t>(count));
  return pass_on(whole_characters(waiting_)) ? count : 0;
}

/// An unfinished character waits for its remaining bytes.
int VisibleStream::sync() { return pass_on(whole_characters(waiting_)) && flush_below() ? 0 : -1; }

ExactStream::ExactStream(std::ostream& stream) : visible_(dynamic_cast<VisibleStream*>(stream.rdbuf())) {
  if (visible_ == nullptr) return;
  stream.flush();
  visible_->is_exact_ = true;
}

ExactStream::~ExactStream() {
  if (visible_ != nullptr) visible_->is_exact_ = false;
}

namespace {

constexpr int kSignalled = 128;  ///< a shell adds it to the number of the signal that ended a process

class StopSentence {
 public:
  void set(StopWords words) {
    const std::lock_guard lock(mutex_);
    words_ = std::move(words);
  }
  std::optional<std::string> after() {
    const std::lock_guard lock(mutex_);
    return words_ ? words_() : std::string();
  }

 private:
  std::mutex mutex_;
  StopWords words_;
};

/// Never destroyed, because the thread that uses it runs longer than main().
StopSentence& stop_sentence() {
  static auto& sentence = *new StopSentence;
  return sentence;
}

/// Returns those of the three signals that are not ignored.
sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  return signals;
}

[[noreturn]] void wait_and_end(const sigset_t& signals) {
  int signal = 0;
  ::sigwait(&signals, &signal);
  // a second signal then reaches this thread, even if it waits for a terminal or a disk that does not answer
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  try {
    if (const std::optional<std::string> after = stop_sentence().after())
      log_error(cat("stopped by ", stop_signal_name(signal), after->empty() ? "" : "; ", *after));
  } catch (const std::exception&) {
    // then it ends without the message
  }
  // Not exit(), because other threads are running. Ends by the signal itself, so that a loop in a shell ends, too, and
  // the shell shows 128 + signal.
  std::raise(signal);
  ::_exit(kSignalled + signal);  // if this is process 1 of a container, signals without a handler have no effect
}

}  // namespace

void end_on_signals() {
  const sigset_t signals = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] { wait_and_end(signals); }).detach();
}

void set_stop_words(StopWords words) { stop_sentence().set(std::move(words)); }

std::string stop_signal_name(int signal) {
  if (signal == SIGINT) return "SIGINT (Ctrl-C)";
  return signal == SIGTERM ? "SIGTERM" : signal == SIGHUP ? "SIGHUP" : cat("signal ", signal);
}

}  // namespace lancet::cli
