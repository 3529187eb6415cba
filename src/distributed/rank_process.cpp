#include "rank_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr int kCannotStart = 127;  ///< the shell's exit code for a missing command

/// "NAME=value" and arguments in the form for execve.
class CStrings {
 public:
  explicit CStrings(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

std::vector<std::string> assignments(const Environment& environment) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : environment) texts.push_back(cat(name, "=", value));
  return texts;
}

struct ChildPlan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int output;
  int error;
  pid_t parent;
};

/// Turns the child into the program. After fork in a process with threads, only safe functions may be called until
/// exec.
[[noreturn]] void become(const ChildPlan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // the parent died before its death could have ended this process
  if (::getppid() != plan.parent) ::_exit(kCannotStart);
  ::dup2(plan.output, STDOUT_FILENO);
  ::dup2(plan.error, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);  // exec resets handlers to the default, but ignored signals stay ignored
  ::execve(plan.program, plan.arguments, plan.environment);
  ::_exit(kCannotStart);
}

std::array<int, 2> open_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(ExitCode::kInternal, cat("pipe: ", std::strerror(errno)));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return ends;
}

void write_all(int to, const char* bytes, ssize_t count) {
  while (count > 0) {
    const ssize_t written = ::write(to, bytes, static_cast<size_t>(count));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;  // a closed terminal does not stop a job
    if (written > 0) {
      bytes += written;
      count -= written;
    }
  }
}

}  // namespace

RankProcess::RankProcess(int64_t rank, const RankCommand& command, Echo echo) : rank_(rank), log_(command.log) {
  log_descriptor_ = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (log_descriptor_ < 0)
    throw ConfigError(cat("--log-dir: ", log_.string(), ": cannot write: ", std::strerror(errno)));
  int writing[2] = {log_descriptor_, log_descriptor_};
  if (echo == Echo::kTerminal)
    for (int stream = 0; stream < 2; ++stream) {
      const std::array<int, 2> ends = open_pipe();
      pipes_[stream] = ends[0];
      writing[stream] = ends[1];
    }
  std::vector<std::string> words{command.program.string()};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  const CStrings arguments(std::move(words)), environment(assignments(command.environment));
  const ChildPlan plan{
      command.program.c_str(), arguments.data(), environment.data(), writing[0], writing[1], ::getpid()};
  pid_ = ::fork();
  if (pid_ == 0) become(plan);
  const int fork_error = errno;
  if (pid_ > 0) ::setpgid(pid_, pid_);  // here too: it may be sent a signal before it comes to do so itself
  if (echo == Echo::kTerminal)
    for (const int end : writing) ::close(end);
  if (pid_ < 0)
    throw Error(ExitCode::kInternal, cat("cannot start rank ", rank, ": fork: ", std::strerror(fork_error)));
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : rank_(other.rank_),
      log_(std::move(other.log_)),
      log_descriptor_(std::exchange(other.log_descriptor_, -1)),
      pipes_{std::exchange(other.pipes_[0], -1), std::exchange(other.pipes_[1], -1)},
      pid_(std::exchange(other.pid_, -1)),
      n_error_bytes_(other.n_error_bytes_) {}

RankProcess::~RankProcess() {
  if (pid_ > 0) {
    send(SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  for (const int descriptor : {log_descriptor_, pipes_[0], pipes_[1]})
    if (descriptor >= 0) ::close(descriptor);
}

std::optional<int> RankProcess::take_end() {
  if (pid_ <= 0) return std::nullopt;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  ::kill(-pid_, SIGKILL);  // children of its own, should there be any
  pid_ = -1;
  return status;
}

void RankProcess::send(int signal) const {
  if (pid_ > 0) ::kill(-pid_, signal);
}

/// The number of bytes.
int64_t RankProcess::copy(int& from, int to) const {
  std::array<char, 16384> buffer{};
  int64_t copied = 0;
  while (from >= 0) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got > 0) {
      write_all(to, buffer.data(), got);
      write_all(log_descriptor_, buffer.data(), got);
      copied += got;
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else if (got < 0 && errno == EAGAIN) {
      break;
    } else {
      ::close(from);
      from = -1;
    }
  }
  return copied;
}

void RankProcess::echo() {
  copy(pipes_[0], STDOUT_FILENO);
  n_error_bytes_ += copy(pipes_[1], STDERR_FILENO);
}

}  // namespace lancet
