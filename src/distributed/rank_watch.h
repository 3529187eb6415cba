// Watches that the ranks of a job are alive and make progress. Each rank has two threads for it: one writes about this
// rank to the store and reads about the others, and one only watches this rank and needs no other. A thread that finds
// a rank gone or hanging reports it in the store, and then every rank ends: by itself if its work reaches a collective,
// otherwise by this watch.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "rank_board.h"
#include "rank_observer.h"

namespace lancet {

struct WatchOptions {
  int64_t rank = 0;
  std::vector<std::string> hosts;  ///< one for each rank
  std::string store_place;         ///< which host serves the store, and at which address, for messages
  std::chrono::seconds timeout;    ///< a rank without any progress for this time counts as hanging
};

class RankWatch final : public RankObserver {
 public:
  /// `board`: a connection that nothing else uses.
  RankWatch(RankBoard board, WatchOptions options);
  ~RankWatch() override;  ///< ends the watch, but not the process
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  void set_timeout(std::chrono::seconds timeout);
  void begin_stage(const std::string& stage) override;
  void begin_wait() override;
  void end_wait() override;
  std::string explain(const std::string& transport_error) override;

  void report_failure(ExitCode code, const std::string& message) override;

  /// This rank is about to end with `code`, and reports the reason itself. The process ends even if its clean-up hangs.
  void expect_end(ExitCode code);

 private:
  using Clock = std::chrono::steady_clock;
  /// How the watch ends a process that does not end by itself.
  struct Verdict {
    std::string message;  ///< printed at the end; empty: nothing
    ExitCode code = ExitCode::kCollective;
    Clock::time_point at;  ///< when the process is ended
  };
  struct Peer {
    RankBeat beat;
    Clock::time_point lived;     ///< when its tick last changed
    Clock::time_point moved_on;  ///< when its progress last changed
  };

  void tell_and_listen();
  void look_at_peers(const std::vector<RankBeat>& beats);
  void guard();
  void check_self(Clock::time_point now);
  void decide(const std::string& message);
  void decide_and_publish(const RankFailure& failure);
  RankFailure failure_of(int64_t rank, std::string what) const;
  void shift_clocks(Clock::duration gap);

  RankBoard board_;
  Reporter& reporter_ = reporter();  ///< reporter of the thread that does this rank's work
  const WatchOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::seconds timeout_;
  std::string stage_;
  std::string told_stage_;  ///< the stage that the others know
  int waits_ = 0;
  int64_t progress_ = 0;  ///< own progress when it was last checked
  Clock::time_point moved_on_ = Clock::now();
  Clock::time_point last_contact_ = Clock::now();
  std::vector<Peer> peers_;
  bool a_peer_is_gone_ = false;  ///< a collective failed, so a rank without beats is the one that is gone
  std::optional<RankFailure> to_publish_;
  std::optional<Verdict> verdict_;
  bool teller_ends_ = false;
  bool guard_ends_ = false;
  std::thread teller_;
  std::thread guard_;
};

}  // namespace lancet
