#include "lancet/distributed/launcher.h"

#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include "host_names.h"
#include "lancet/core/message_tag.h"
#include "lancet/core/strings.h"
#include "rank_board.h"
#include "rank_process.h"

namespace lancet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kOutputPoll{50};
/// The time that the other ranks have to notice a failure, report it and clean up; then the time between SIGTERM and
/// SIGKILL.
constexpr milliseconds kOwnWay{2500};
constexpr milliseconds kKillAfter{1500};

volatile std::sig_atomic_t caught_signal = 0;
void note_signal(int signal) { caught_signal = signal; }

/// Notes SIGINT, SIGTERM and SIGHUP while it exists, except signals that are ignored (nohup). A closed terminal does
/// not end the job.
class SignalNotes {
 public:
  SignalNotes() {
    caught_signal = 0;
    struct sigaction action {};
    action.sa_handler = note_signal;
    for (size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
    }
    ::signal(SIGPIPE, SIG_IGN);
  }
  ~SignalNotes() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  SignalNotes(const SignalNotes&) = delete;
  SignalNotes& operator=(const SignalNotes&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

int64_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

struct Place {
  std::string address{"127.0.0.1"};
  int64_t port = 0;
};

Place parse_place(const LaunchOptions& options) {
  if (options.local_ranks < 1 || options.nodes < 1 || options.node_rank < 0 || options.node_rank >= options.nodes)
    throw ConfigError(cat("-n ", options.local_ranks, " --nodes ", options.nodes, " --node-rank ", options.node_rank,
                          ": expected at least one rank and node, and a node rank from 0 to ", options.nodes - 1));
  if (options.nodes == 1 && options.master.empty()) return {};  // any free port
  const size_t colon = options.master.rfind(':');
  char* end = nullptr;
  const int64_t port = colon == std::string::npos ? 0 : std::strtoll(options.master.c_str() + colon + 1, &end, 10);
  if (colon == 0 || port < 1 || port > 65535 || *end != '\0')
    throw ConfigError(cat("--master: '", options.master, "': expected HOST:PORT, the same on every host: where host 0 ",
                          "is reached by the others, and a free port there"));
  if (options.nodes == 1) return {.port = port};  // all ranks are on this host, so nobody else has to reach them
  return {options.master.substr(0, colon), port};
}

/// Returns a text that only the job's ranks know.
std::string job_secret(const LaunchOptions& options) {
  const Environment environment = process_environment();
  const auto given = environment.find(kSecretVariable);
  if (given != environment.end() && !given->second.empty()) return given->second;
  if (options.nodes == 1) return random_secret();
  throw ConfigError(cat(kSecretVariable, " is not set: the ranks' store at ", options.master,
                        " is reached from other hosts, and takes only what is written with the job's secret. Set it ",
                        "to the same random text on every host: export ", kSecretVariable, "=", random_secret()));
}

class Launch {
 public:
  explicit Launch(const LaunchOptions& options)
      : options_(options), place_(parse_place(options)), secret_(job_secret(options)) {
    std::error_code error;
    std::filesystem::create_directories(options_.log_dir, error);
    if (error) throw ConfigError(cat("--log-dir: ", options_.log_dir.string(), ": ", error.message()));
    if (options_.node_rank == 0) {
      served_ = serve_store(place_.address, place_.port);
      place_.port = served_.port;
    }
  }

  LaunchOutcome run() {
    const SignalNotes notes;
    for (int64_t local = 0; local < options_.local_ranks; ++local) start(local);
    while (is_any_running()) {
      wait_a_little();
      for (RankProcess& rank : ranks_)
        if (const std::optional<int> status = rank.take_end()) note_end(rank, *status);
      if (caught_signal != 0) interrupt(caught_signal);
      end_the_rest();
    }
    for (RankProcess& rank : ranks_) rank.echo();
    if (outcome_.interrupted_by != 0) outcome_.rank_0_spoke = ranks_.front().n_error_bytes() > words_before_;
    adopt_cause();
    if (ending_since_ && outcome_.code == ExitCode::kOk) outcome_.code = ExitCode::kCollective;
    let_others_leave();
    return outcome_;
  }

 private:
  int64_t world() const { return options_.local_ranks * options_.nodes; }

  void start(int64_t local) {
    const int64_t rank = options_.node_rank * options_.local_ranks + local;
    RankCommand command{options_.program, options_.arguments, process_environment(),
                        options_.log_dir / cat("rank-", rank, ".log")};
    Environment& set = command.environment;
    set["RANK"] = std::to_string(rank);
    set["WORLD_SIZE"] = std::to_string(world());
    set["LOCAL_RANK"] = std::to_string(local);
    set["LOCAL_WORLD_SIZE"] = std::to_string(options_.local_ranks);
    set["MASTER_ADDR"] = place_.address;
    set["MASTER_PORT"] = std::to_string(place_.port);
    set["TORCHELASTIC_USE_AGENT_STORE"] = "True";
    set["TORCHELASTIC_RUN_ID"] = "lancet-launch";
    set["TORCHELASTIC_RESTART_COUNT"] = "0";
    set["LANCET_RANK_LOG"] = command.log.string();
    set[kSecretVariable] = secret_;
    // shares the cores, because threads of several ranks on one core would wait for each other
    set.try_emplace("OMP_NUM_THREADS", std::to_string(std::max<int64_t>(1, usable_cores() / options_.local_ranks)));
    ranks_.emplace_back(rank, command, rank == 0 ? Echo::kTerminal : Echo::kNone);
  }

  bool is_any_running() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const RankProcess& rank) { return rank.is_running(); });
  }

  void wait_a_little() {
    RankProcess& first = ranks_.front();
    pollfd pipes[2] = {{first.output_end(), POLLIN, 0}, {first.error_end(), POLLIN, 0}};
    ::poll(pipes, 2, static_cast<int>(kOutputPoll.count()));
    first.echo();
  }

  /// Returns the board if the store is served here, or can be reached now.
  RankBoard* board() {
    if (board_) return &*board_;
    const std::string attempt = "lancet-launch.0";
    try {
      LaunchInfo info;
      info.rank = -1;  // this is no rank, but a client of the store
      info.address = place_.address;
      info.port = place_.port;
      const auto store = served_.store ? served_.store : open_store(info, milliseconds(1000));
      board_.emplace(attempt_store(store, attempt, secret_));
      return &*board_;
    } catch (const std::exception&) {
      return nullptr;  // then the launcher goes on with what it knows
    }
  }

  std::string last_stage(int64_t rank) {
    try {
      if (RankBoard* const known = board(); known != nullptr && known->presence(rank))
        return known->last_beat(rank).stage;
    } catch (const std::exception&) {
    }
    return "joining";
  }

  void note_end(RankProcess& rank, int status) {
    rank.echo();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (ending_since_ && WIFSIGNALED(status) && signalled_) return;  // this launcher ended it
    if (!ending_since_) ending_since_ = Clock::now();
    const int code = WIFSIGNALED(status) ? static_cast<int>(ExitCode::kCollective) : WEXITSTATUS(status);
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      if (!first_) by_signal_ = true;
      record({rank.rank(), host_name(), last_stage(rank.rank()),
              cat("ended by signal ", signal, " (", ::strsignal(signal), ")"), code},
             rank.log());
    } else if (code != static_cast<int>(ExitCode::kCollective)) {
      record({rank.rank(), host_name(), last_stage(rank.rank()), cat("ended with exit code ", code), code}, rank.log());
    } else if (!first_) {
      // it follows from the failure of another rank, which may still be reported
      outcome_.code = ExitCode::kCollective;
      kill_culprit();
    }
  }

  /// Records the first failure that does not follow from another one.
  void record(const RankFailure& failure, const std::filesystem::path& log) {
    if (first_) return;
    first_ = failure;
    first_log_ = log;
    try {
      if (RankBoard* const known = board()) known->fail(failure);
    } catch (const std::exception&) {
    }
  }

  /// Kills a rank because of which the others ended: it does not end by itself if it hangs or is stopped.
  void kill_culprit() {
    const std::optional<RankFailure> published = published_failure();
    if (!published || published->exit_code != static_cast<int>(ExitCode::kCollective)) return;
    for (const RankProcess& rank : ranks_) {
      if (rank.rank() != published->rank || !rank.is_running()) continue;
      first_ = published;
      first_log_ = rank.log();
      rank.send(SIGKILL);
    }
  }

  std::optional<RankFailure> published_failure() {
    try {
      if (RankBoard* const known = board()) return known->failure();
    } catch (const std::exception&) {
    }
    return std::nullopt;
  }

  void interrupt(int signal) {
    if (outcome_.interrupted_by == 0) {
      outcome_.interrupted_by = signal;
      words_before_ = ranks_.front().n_error_bytes();
      ending_since_ = Clock::now() - kOwnWay;
    } else if (signalled_) {
      for (const RankProcess& rank : ranks_) rank.send(SIGKILL);  // the user asked a second time
    }
    caught_signal = 0;
  }

  void end_the_rest() {
    if (!ending_since_) return;
    const auto waited = Clock::now() - *ending_since_;
    if (waited >= kOwnWay && !signalled_) {
      signalled_ = true;
      // a rank then says what it keeps of the work, as if the user had stopped it
      for (const RankProcess& rank : ranks_)
        rank.send(outcome_.interrupted_by != 0 ? outcome_.interrupted_by : SIGTERM);
    }
    if (waited >= kOwnWay + kKillAfter)
      for (const RankProcess& rank : ranks_) rank.send(SIGKILL);
  }

  /// Takes code and message of the first failure. It may be on another host, or only the ranks may know it.
  void adopt_cause() {
    std::optional<RankFailure> cause = first_;
    if (first_ || outcome_.code != ExitCode::kOk) {
      // A rank's own message says more than its exit code. About a rank that was killed, the others know less.
      const std::optional<RankFailure> published = published_failure();
      if (published && !(by_signal_ && first_->rank == published->rank)) cause = published;
    }
    if (!cause) return;
    outcome_.code = static_cast<ExitCode>(cause->exit_code);
    outcome_.failure = to_text(*cause);
    if (first_ && first_->rank == cause->rank) outcome_.failure += cat("; its log: ", first_log_.string());
  }

  /// Keeps the store until the ranks of all hosts no longer need it, and after a failure until the other hosts'
  /// launchers no longer need it.
  void let_others_leave() {
    if (options_.nodes == 1) return;
    const bool has_failed = outcome_.code != ExitCode::kOk;
    try {
      if (!served_.store && has_failed && board() != nullptr) board()->leave();
      if (!served_.store || board() == nullptr) return;
      const int64_t users = world() + (has_failed ? options_.nodes - 1 : 0);
      board()->wait_until_left(users, has_failed ? JobEnd::kFailed : JobEnd::kDone);
    } catch (const std::exception&) {
      // the store is gone, so nobody needs it
    }
  }

  const LaunchOptions& options_;
  Place place_;
  std::string secret_;
  ServedStore served_;
  std::optional<RankBoard> board_;
  std::vector<RankProcess> ranks_;
  std::optional<RankFailure> first_;
  std::filesystem::path first_log_;
  std::optional<Clock::time_point> ending_since_;
  bool by_signal_ = false;  ///< the first failure
  bool signalled_ = false;
  int64_t words_before_ = 0;  ///< bytes that the first rank had written to stderr when the launcher was interrupted
  LaunchOutcome outcome_;
};

}  // namespace

LaunchOutcome launch_ranks(const LaunchOptions& options) { return Launch(options).run(); }

}  // namespace lancet
