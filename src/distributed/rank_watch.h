// Watches that the ranks of a job live and get on, from two threads of each: one tells the store about this rank and
// reads about the others, one looks at this rank alone and needs nobody. Whoever finds a rank gone or stalled says so
// in the store, and every rank ends: by itself where its work comes by a collective, by this watch where it does not.
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
  std::string store_place;         ///< who serves the store, and where, for messages
  std::chrono::seconds timeout;    ///< time without any progress from which on a rank counts as stalled
};

class RankWatch final : public RankObserver {
 public:
  /// `board`: a connection that nothing else uses.
  RankWatch(RankBoard board, WatchOptions options);
  ~RankWatch() override;  ///< the watch ends; the process does not
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  void set_timeout(std::chrono::seconds timeout);
  void begin_stage(const std::string& stage) override;
  void begin_wait() override;
  void end_wait() override;
  std::string explain(const std::string& transport_error) override;

  void report_failure(ExitCode code, const std::string& message) override;

  /// This rank is about to end with `code`, and says why itself: the process ends even if its cleaning up does not.
  void expect_end(ExitCode code);

 private:
  using Clock = std::chrono::steady_clock;
  /// How a process ends that does not by itself.
  struct Verdict {
    std::string message;  ///< printed then; empty: nothing
    ExitCode code = ExitCode::kCollective;
    Clock::time_point at;  ///< time at which it is carried out
  };
  struct Peer {
    RankBeat beat;
    Clock::time_point lived;     ///< time at which its tick last changed
    Clock::time_point moved_on;  ///< time at which its progress last changed
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
  Reporter& reporter_ = reporter();  ///< reporter of the thread that this rank's work is of
  const WatchOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::seconds timeout_;
  std::string stage_;
  std::string told_stage_;  ///< the others have been told
  int waits_ = 0;
  int64_t progress_ = 0;  ///< own, as last seen
  Clock::time_point moved_on_ = Clock::now();
  Clock::time_point last_contact_ = Clock::now();
  std::vector<Peer> peers_;
  bool a_peer_is_gone_ = false;  ///< a collective failed: who is silent now is the one
  std::optional<RankFailure> to_publish_;
  std::optional<Verdict> verdict_;
  bool teller_ends_ = false;
  bool guard_ends_ = false;
  std::thread teller_;
  std::thread guard_;
};

}  // namespace lancet
