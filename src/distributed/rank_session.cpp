#include "lancet/distributed/rank_session.h"

#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "host_names.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "process_group_communicator.h"
#include "rank_board.h"
#include "rank_watch.h"

namespace lancet {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kPoll{100};

/// Who is missing, and who is there.
std::string absent_text(const std::vector<std::optional<RankPresence>>& ranks, seconds waited) {
  std::vector<std::string> missing, here;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank])
      here.push_back(cat(rank, " on ", ranks[rank]->host));
    else
      missing.push_back(std::to_string(rank));
  }
  return cat("of ", ranks.size(), " ranks these did not come within ", waited.count(),
             " s: ", excerpt(join(missing), 400), ". Here are: ", excerpt(join(here), 400),
             ". Start all at the same time, each with its own number, or wait longer with --join-timeout");
}

std::vector<RankPresence> wait_for_all(RankBoard& board, int64_t size, seconds timeout) {
  std::vector<std::optional<RankPresence>> ranks(static_cast<size_t>(size));
  const Clock::time_point end = Clock::now() + timeout;
  for (;;) {
    size_t n_here = 0;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (!ranks[rank]) ranks[rank] = board.presence(static_cast<int64_t>(rank));
      n_here += ranks[rank] ? 1 : 0;
    }
    if (n_here == ranks.size()) break;
    if (const std::optional<RankFailure> failure = board.failure()) throw CollectiveError(to_text(*failure));
    if (Clock::now() > end) throw CollectiveError(absent_text(ranks, timeout));
    std::this_thread::sleep_for(kPoll);
  }
  std::vector<RankPresence> here;
  for (const std::optional<RankPresence>& rank : ranks) here.push_back(*rank);
  return here;
}

/// Ranks of several hosts cannot meet where one of them says 127.0.0.1.
void check_addresses(const std::vector<RankPresence>& ranks, const LaunchInfo& launch) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].host != ranks[0].host && launch.interface.empty())
      for (size_t other = 0; other < ranks.size(); ++other)
        if (is_loopback(ranks[other].address))
          throw CollectiveError(cat("rank ", other, " on ", ranks[other].host, " would be reached at ",
                                    ranks[other].address, ", which is that host itself: on every host, set ",
                                    "GLOO_SOCKET_IFNAME to the network interface between them (`ip address`), or ",
                                    "MASTER_ADDR to an address instead of a name"));
}

std::string store_place(const LaunchInfo& launch, const std::vector<RankPresence>& ranks) {
  const std::string address = cat(launch.address, ":", launch.port);
  return launch.store_host == StoreHost::kAgent
             ? cat("the launcher, which serves the ranks' store at ", address, ",")
             : cat("rank 0 on ", ranks[0].host, ", which serves the ranks' store at ", address, ",");
}

}  // namespace

/// Members end in the reverse order: the connections first, the watch last.
struct RankSession::Group {
  Group(const LaunchInfo& info, seconds join_timeout)
      : launch(info),
        board(attempt_store(open_store(launch, join_timeout), launch.attempt, launch.secret)),
        ranks(meet(join_timeout)),
        watch(board.clone(), watch_options(join_timeout)),
        communicator(std::in_place, board.store(), group_options(join_timeout)) {
    if (launch.rank == 0 && launch.secret.empty() && !is_loopback(launch.address))
      log_warning(cat("the ranks' store at ", launch.address, ":", launch.port,
                      " takes values from whoever reaches it: ", "set ", kSecretVariable,
                      " to the same random text for all ranks"));
  }

  ~Group() {
    communicator.reset();
    try {
      board.leave();
      if (launch.rank != 0 || launch.store_host == StoreHost::kAgent) return;
      board.wait_until_left(launch.size, has_failed ? JobEnd::kFailed : JobEnd::kDone);
    } catch (const std::exception&) {
      // the store is gone, and with it whoever would read that this rank leaves
    }
  }

  std::vector<RankPresence> meet(seconds join_timeout) {
    const RankPresence own{host_name(), address_towards(launch.address, launch.port)};
    if (!board.claim(launch.rank, own))
      throw CollectiveError(cat("two processes say that they are rank ", launch.rank, " of the job at ", launch.address,
                                ":", launch.port,
                                ": each needs a number of its own, and each job a MASTER_PORT of its own"));
    try {
      std::vector<RankPresence> all = wait_for_all(board, launch.size, join_timeout);
      check_addresses(all, launch);
      return all;
    } catch (const CollectiveError& error) {
      // ranks that are here hear it from the first that gives up, which may serve the store
      board.fail({launch.rank, own.host, "joining", error.what(), static_cast<int>(ExitCode::kCollective)});
      std::this_thread::sleep_for(5 * kPoll);
      throw;
    }
  }

  WatchOptions watch_options(seconds timeout) const {
    WatchOptions options{
        .rank = launch.rank, .hosts = {}, .store_place = store_place(launch, ranks), .timeout = timeout};
    for (const RankPresence& rank : ranks) options.hosts.push_back(rank.host);
    return options;
  }

  GroupOptions group_options(seconds join_timeout) {
    const RankPresence& own = ranks[static_cast<size_t>(launch.rank)];
    return {.rank = static_cast<int>(launch.rank),
            .size = static_cast<int>(launch.size),
            .host = own.host,
            .address = own.address,
            .interface = launch.interface,
            .join_timeout = join_timeout,
            .observer = &watch};
  }

  LaunchInfo launch;
  bool has_failed = false;
  RankBoard board;
  std::vector<RankPresence> ranks;
  RankWatch watch;
  std::optional<ProcessGroupCommunicator> communicator;
};

RankSession::RankSession(const LaunchInfo& launch, seconds join_timeout) {
  if (launch.size == 1) return;
  set_environment_of_groups();
  group_ = std::make_unique<Group>(launch, join_timeout);
}

RankSession::~RankSession() = default;

Communicator& RankSession::communicator() {
  if (!group_) return single_;
  return *group_->communicator;
}

HostShare RankSession::on_host() const {
  if (!group_) return {};
  return {group_->launch.local_rank, group_->launch.local_size};
}

void RankSession::set_timeout(seconds timeout) {
  if (group_) group_->watch.set_timeout(timeout);
}

void RankSession::fail(ExitCode code, const std::string& message) {
  if (!group_) return;
  if (code != ExitCode::kCollective) group_->watch.report_failure(code, message);
  group_->watch.expect_end(code);
  group_->has_failed = true;
}

}  // namespace lancet
