#include "stop_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"

namespace lancet::cli {
namespace {

constexpr int kSignalled = 128;  ///< a shell's exit code for a process that ended by a signal, less the signal

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

/// Never destroyed: the thread that needs it outlives main().
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
  // a second one finds this thread, whatever it waits for: a terminal or a disk that does not answer
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  try {
    if (const std::optional<std::string> after = stop_sentence().after())
      log_error(cat("stopped by ", stop_signal_name(signal), after->empty() ? "" : "; ", *after));
  } catch (const std::exception&) {
    // without the words, then
  }
  // Not exit(): other threads are at work. By the signal, so that a shell's loop ends too, and shows 128 + signal.
  std::raise(signal);
  ::_exit(kSignalled + signal);  // process 1 of a container: signals without a handler do not reach it
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
