// One rank as a process of its own: started, logged, ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/distributed/rank_session.h"

namespace lancet {

struct RankCommand {
  std::filesystem::path program;
  std::vector<std::string> arguments;  ///< arguments without the program's own name
  Environment environment;
  std::filesystem::path log;
};

/// What a rank's output goes to besides its log.
enum class Echo { kNone, kTerminal };

class RankProcess {
 public:
  /// Starts the rank in a process group of its own; killed when the thread that started it ends. Throws: ConfigError
  /// when the log cannot be written, Error when the process cannot be started.
  RankProcess(int64_t rank, const RankCommand& command, Echo echo);
  ~RankProcess();  ///< kills what still runs
  RankProcess(RankProcess&&) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;

  int64_t rank() const { return rank_; }
  const std::filesystem::path& log() const { return log_; }
  bool is_running() const { return pid_ > 0; }
  /// Returns waitpid's status once, when the process has ended since the last call.
  std::optional<int> take_end();
  /// Sends the signal to the process and its own children.
  void send(int signal) const;

  /// Ends of the pipes that echo; -1 where there is none.
  int output_end() const { return pipes_[0]; }
  int error_end() const { return pipes_[1]; }
  /// Copies what lies in the pipes to the log and to this process's own stdout and stderr; never waits.
  void echo();
  /// That echo() has copied to stderr.
  int64_t n_error_bytes() const { return n_error_bytes_; }

 private:
  int64_t copy(int& from, int to) const;

  int64_t rank_;
  std::filesystem::path log_;
  int log_descriptor_ = -1;
  int pipes_[2] = {-1, -1};  // stdout's and stderr's reading ends
  pid_t pid_ = -1;
  int64_t n_error_bytes_ = 0;
};

}  // namespace lancet
