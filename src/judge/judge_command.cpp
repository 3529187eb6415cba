// A judge that is a program. It reads a line with a JSON object for each question, and writes a line. It is started
// with the first question and runs as long as the judge object exists. If it does not answer in time it is ended, and
// the next question starts it again.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/http/http_client.h"
#include "lancet/judge/answer_judge.h"

extern char** environ;

namespace lancet {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kLookEvery_ms = 200;  ///< time between two checks whether the work was cancelled
constexpr size_t kLongestLine = 1 << 16;
constexpr std::chrono::milliseconds kGreetingPatience(2000);
constexpr size_t kShownOutput = 100;  ///< of unexpected text

std::string system_words(int error) { return std::strerror(error); }

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  void reset(int descriptor = -1) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = descriptor;
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// A child process that reads questions and writes verdicts. Its process group ends with this object.
class JudgeProcess {
 public:
  explicit JudgeProcess(const std::vector<std::string>& command) {
    std::array<int, 2> ends{};  // not pipes, because writing to a pipe that nobody reads raises a signal
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw ServerError(cat("cannot be started: ", system_words(errno)));
    own_.reset(ends[0]);
    const FileDescriptor childs(ends[1]);
    ::fcntl(own_.get(), F_SETFL, O_NONBLOCK);
    spawn(command, childs.get());
  }
  ~JudgeProcess() {
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  JudgeProcess(const JudgeProcess&) = delete;
  JudgeProcess& operator=(const JudgeProcess&) = delete;

  /// Throws: ServerError after `until`, or if the program has ended.
  void write_line(std::string line, Clock::time_point until) {
    line += '\n';
    for (std::string_view left = line; !left.empty();) {
      wait_for(own_.get(), POLLOUT, until, "did not read its question");
      const ssize_t written = ::send(own_.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (written < 0) throw ServerError(ended_text());
      left.remove_prefix(static_cast<size_t>(written));
    }
  }
  std::string read_line(Clock::time_point until) {
    for (;;) {
      if (const size_t end = read_.find('\n'); end != std::string::npos) {
        std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        return line;
      }
      if (read_.size() > kLongestLine) throw ServerError(cat("wrote a line of more than ", kLongestLine, " bytes"));
      wait_for(own_.get(), POLLIN, until, "gave no line back");
      std::array<char, 4096> buffer{};
      const ssize_t got = ::recv(own_.get(), buffer.data(), buffer.size(), 0);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) throw ServerError(ended_text());
      read_.append(buffer.data(), static_cast<size_t>(got));
    }
  }
  /// Throws: ConfigError if there is text to which no question belongs, or if some comes within `patience`: it would be
  /// read as the answer to another question.
  void expect_silence(std::chrono::milliseconds patience = {}) {
    pollfd polled{own_.get(), POLLIN, 0};
    std::array<char, 256> buffer{};
    if (read_.empty() && ::poll(&polled, 1, static_cast<int>(patience.count())) > 0)
      if (const ssize_t got = ::recv(own_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT); got > 0)
        read_.append(buffer.data(), static_cast<size_t>(got));
    if (!read_.empty())
      throw ConfigError(
          cat("evaluate.judge.command: expected one line for each question, which begins with yes or no, ",
              "and nothing else on standard output, got more than a line: '", printable(excerpt(read_, kShownOutput)),
              "'"));
  }

 private:
  void spawn(const std::vector<std::string>& command, int childs) {
    std::vector<std::string> words = command;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO})
      ::posix_spawn_file_actions_adddup2(&files, childs, standard);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t none, usual;
    ::sigemptyset(&none);
    ::sigemptyset(&usual);
    for (const int signal : {SIGPIPE, SIGINT, SIGTERM}) ::sigaddset(&usual, signal);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &usual);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const int problem = ::posix_spawnp(&pid_, arguments[0], &files, &attributes, arguments.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (problem != 0) {
      pid_ = 0;
      throw ServerError(cat("cannot be started: ", system_words(problem)));
    }
  }

  static void wait_for(int descriptor, short events, Clock::time_point until, const char* what) {
    for (;;) {
      count_progress();
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      if (left <= 0) throw ServerError(cat("timed out: ", what));
      pollfd polled{descriptor, events, 0};
      const int found = ::poll(&polled, 1, static_cast<int>(std::min<int64_t>(left, kLookEvery_ms)));
      if (found > 0) return;
      if (found < 0 && errno != EINTR) throw ServerError(system_words(errno));
    }
  }

  static std::string ended_text() { return "ended before it answered"; }

  FileDescriptor own_;  ///< the other end is the child's standard input and output
  pid_t pid_ = 0;
  std::string read_;  ///< bytes of lines that were not returned yet
};

class JudgeCommand final : public JudgeLine {
 public:
  explicit JudgeCommand(const JudgeOptions& options) : command_(options.command), seconds_(options.seconds) {}

  std::string ask(const JudgedAnswer& judged, const std::string& question) override {
    const Json line = {{"question", question},
                       {"prompt", judged.prompt},
                       {"answer", judged.answer},
                       {"target", judged.target},
                       {"aliases", judged.aliases}};
    const Clock::time_point until = Clock::now() + seconds_;
    try {
      const bool is_first = !process_;
      if (is_first) process_ = std::make_unique<JudgeProcess>(command_);
      process_->expect_silence();
      process_->write_line(line.dump(-1, ' ', false, Json::error_handler_t::replace), until);
      std::string words = process_->read_line(until);
      // a program that greets first gives every answer one question late
      const bool may_greet = is_first && verdict_in(words) == JudgeVerdict::kUnclear;
      process_->expect_silence(may_greet ? kGreetingPatience : std::chrono::milliseconds());
      return words;
    } catch (const ServerError& error) {
      process_.reset();
      throw ServerError(cat("'", join(command_, " "), "' ", error.what()));
    } catch (...) {
      process_.reset();
      throw;
    }
  }

 private:
  std::vector<std::string> command_;
  std::chrono::seconds seconds_;
  std::unique_ptr<JudgeProcess> process_;
};

}  // namespace

std::unique_ptr<JudgeLine> make_command_line(const JudgeOptions& options) {
  return std::make_unique<JudgeCommand>(options);
}

}  // namespace lancet
