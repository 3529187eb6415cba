#include "rank_watch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kBeat{500};
constexpr milliseconds kLook{250};
constexpr milliseconds kTellStage{200};
/// The time that a rank has to end by itself after a failure of the job is known: its work may reach a collective and
/// unwind. A collective that only waits for the lost rank never ends.
constexpr milliseconds kGrace{2000}, kGraceOfWaiting{700};
constexpr milliseconds kCleanUp{10'000};
/// Other ranks check a rank's progress later than the rank itself, because its own report says more.
constexpr milliseconds kOthersLater{2000};
/// When a rank without beats counts as gone: the limits of this time, which depends on the timeout; and the time after
/// a collective has failed, when somebody must be gone.
constexpr seconds kLeastSilence{5}, kMostSilence{30};
constexpr milliseconds kSilenceOfTheGone{3000};
constexpr milliseconds kExplain{4500};
/// The host of the store is cut off: connections are neither answered nor refused.
constexpr seconds kNoContact{60};
/// If this process itself was stopped or got no processor, its clocks must not count that time.
constexpr seconds kOwnGap{5};

}  // namespace

RankWatch::RankWatch(RankBoard board, WatchOptions options)
    : board_(std::move(board)), options_(std::move(options)), timeout_(options_.timeout) {
  const Clock::time_point now = Clock::now();
  peers_.resize(options_.hosts.size(), {{}, now, now});
  teller_ = std::thread([this] { tell_and_listen(); });
  guard_ = std::thread([this] { guard(); });
}

RankWatch::~RankWatch() {
  {
    const std::lock_guard lock(mutex_);
    teller_ends_ = true;
    // the telling thread may be blocked by a store that does not answer
    if (!verdict_) verdict_ = {"the ranks' store does not answer", ExitCode::kCollective, Clock::now() + kCleanUp};
  }
  changed_.notify_all();
  teller_.join();
  {
    const std::lock_guard lock(mutex_);
    guard_ends_ = true;
  }
  changed_.notify_all();
  guard_.join();
}

void RankWatch::set_timeout(seconds timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
}

void RankWatch::begin_stage(const std::string& stage) {
  reporter_.count_step();
  std::unique_lock lock(mutex_);
  if (stage == stage_) return;
  stage_ = stage;
  changed_.notify_all();
  // so that a rank that dies at once has reported its stage
  changed_.wait_for(lock, kTellStage, [&] { return told_stage_ == stage_ || verdict_; });
}

void RankWatch::begin_wait() {
  const std::lock_guard lock(mutex_);
  ++waits_;
}

void RankWatch::end_wait() {
  reporter_.count_step();
  const std::lock_guard lock(mutex_);
  --waits_;
  moved_on_ = Clock::now();
}

void RankWatch::report_failure(ExitCode code, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    to_publish_ = failure_of(options_.rank, "failed: " + message);
    to_publish_->exit_code = static_cast<int>(code);
  }
  changed_.notify_all();
}

void RankWatch::expect_end(ExitCode code) {
  const std::lock_guard lock(mutex_);
  verdict_ = {"", code, Clock::now() + kCleanUp};
}

std::string RankWatch::explain(const std::string& transport_error) {
  std::unique_lock lock(mutex_);
  a_peer_is_gone_ = true;
  changed_.wait_for(lock, kExplain, [&] { return verdict_.has_value(); });
  if (!verdict_) return "a rank of the job is gone: " + transport_error;
  verdict_->at = Clock::now() + kCleanUp;
  return verdict_->message;
}

RankFailure RankWatch::failure_of(int64_t rank, std::string what) const {
  const auto r = static_cast<size_t>(rank);
  return {.rank = rank,
          .host = options_.hosts[r],
          .stage = rank == options_.rank ? stage_ : peers_[r].beat.stage,
          .what = std::move(what),
          .exit_code = static_cast<int>(ExitCode::kCollective)};
}

void RankWatch::decide(const std::string& message) {
  if (!verdict_) verdict_ = {message, ExitCode::kCollective, Clock::now() + (waits_ > 0 ? kGraceOfWaiting : kGrace)};
  changed_.notify_all();
}

void RankWatch::decide_and_publish(const RankFailure& failure) {
  if (verdict_) return;
  to_publish_ = failure;
  decide(to_text(failure));
}

void RankWatch::tell_and_listen() {
  std::unique_lock lock(mutex_);
  for (int64_t tick = 1; !teller_ends_; ++tick) {
    const RankBeat own{tick, reporter_.steps(), waits_ > 0, stage_};
    const std::optional<RankFailure> publish = std::exchange(to_publish_, std::nullopt);
    lock.unlock();
    try {
      if (publish) board_.fail(*publish);
      board_.beat(options_.rank, own);
      const std::optional<RankFailure> failure = board_.failure();
      const std::vector<RankBeat> beats = board_.last_beats(static_cast<int64_t>(peers_.size()));
      lock.lock();
      last_contact_ = Clock::now();
      told_stage_ = own.stage;
      changed_.notify_all();
      if (failure) decide(to_text(*failure));
      look_at_peers(beats);
    } catch (const std::exception& error) {
      if (!lock.owns_lock()) lock.lock();
      if (!teller_ends_) decide(cat(options_.store_place, " is gone: ", excerpt(error.what(), 120)));
      return;
    }
    changed_.wait_for(lock, kBeat, [&] { return teller_ends_ || to_publish_ || told_stage_ != stage_; });
  }
}

void RankWatch::look_at_peers(const std::vector<RankBeat>& beats) {
  const Clock::time_point now = Clock::now();
  for (size_t r = 0; r < peers_.size(); ++r) {
    if (beats[r].tick != peers_[r].beat.tick) peers_[r].lived = now;
    if (beats[r].progress != peers_[r].beat.progress) peers_[r].moved_on = now;
    peers_[r].beat = beats[r];
  }
  if (verdict_) return;
  const seconds silence = a_peer_is_gone_ ? std::chrono::duration_cast<seconds>(kSilenceOfTheGone)
                                          : std::clamp(timeout_, kLeastSilence, kMostSilence);
  const auto is_late = [&](const Peer& peer) { return now - peer.moved_on > timeout_ + kOthersLater; };
  for (size_t r = 0; r < peers_.size(); ++r) {
    const Peer& peer = peers_[r];
    const auto rank = static_cast<int64_t>(r);
    if (rank == options_.rank) continue;
    if (now - peer.lived > silence)
      decide_and_publish(
          failure_of(rank, cat("has not been heard of for ", silence.count(),
                               " s: it was killed (out of memory?) or stopped, or its host is down or cut off")));
    else if (!peer.beat.is_waiting && is_late(peer))
      decide_and_publish(failure_of(rank, cat("made no progress for ", timeout_.count(), " s (run.timeout_s)")));
  }
  const auto waits_in_vain = [&](const Peer& peer) { return peer.beat.is_waiting && is_late(peer); };
  if (std::all_of(peers_.begin(), peers_.end(), waits_in_vain))
    decide_and_publish(failure_of(options_.rank, cat("all ranks wait for each other, for ", timeout_.count(),
                                                     " s (run.timeout_s): the network between them is cut, or this is "
                                                     "a defect in lancet")));
}

void RankWatch::shift_clocks(Clock::duration gap) {
  moved_on_ += gap;
  last_contact_ += gap;
  for (Peer& peer : peers_) {
    peer.lived += gap;
    peer.moved_on += gap;
  }
}

void RankWatch::check_self(Clock::time_point now) {
  if (const int64_t progress = reporter_.steps(); progress != progress_) {
    progress_ = progress;
    moved_on_ = now;
  }
  if (verdict_) return;
  if (waits_ == 0 && now - moved_on_ > timeout_)
    decide_and_publish(failure_of(
        options_.rank, cat("made no progress for ", timeout_.count(),
                           " s: it is stuck, or a step takes longer than run.timeout_s, which can be raised")));
  else if (now - last_contact_ > kNoContact)
    decide(cat(options_.store_place, " has not answered for ", kNoContact.count(), " s: its host is down or cut off"));
}

void RankWatch::guard() {
  std::unique_lock lock(mutex_);
  while (!guard_ends_) {
    const Clock::time_point before = Clock::now();
    changed_.wait_for(lock, kLook, [&] { return guard_ends_; });
    const Clock::time_point now = Clock::now();
    if (now - before > kOwnGap) shift_clocks(now - before);
    check_self(now);
    if (!guard_ends_ && verdict_ && now >= verdict_->at) {
      if (!verdict_->message.empty()) reporter_.log(LogLevel::kError, verdict_->message);
      ::_exit(static_cast<int>(verdict_->code));
    }
  }
}

}  // namespace lancet
