// Ctrl-C, SIGTERM and SIGHUP: the program says that it stops and what is kept, and ends at once by the signal, also
// while a kernel runs for seconds. What it was writing never has its final name yet, and goes at the next run.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lancet::cli {

/// Ends the process on signals from here on. To be called before any thread begins: threads inherit which signals reach
/// them. A signal that is ignored (nohup) stays ignored; a second one ends the process without a word.
void end_on_signals();

/// What is said after "stopped by SIGINT (Ctrl-C)", as a clause; nullopt: nothing is said at all, since another
/// process of the job speaks. Called from another thread. Without it no more is known.
using StopWords = std::function<std::optional<std::string>()>;
void set_stop_words(StopWords words);

/// "SIGINT (Ctrl-C)".
std::string stop_signal_name(int signal);

}  // namespace lancet::cli
