#include "lancet/distributed/rank_session.h"

#include <unistd.h>
#include <cstdlib>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "host_names.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "process_group_communicator.h"
#include "rank_board.h"
#include "rank_watch.h"

namespace lancet {

// Variables of torchrun (torch.distributed.run, "Environment Variables"), srun ("OUTPUT ENVIRONMENT VARIABLES"), mpirun
// of Open MPI ("The environment variables that are set at run time"), and of PMI-1 as MPICH's hydra sets them.

namespace {

constexpr const char* kRemedy = "; start the job by its launcher, or ignore the environment with --launcher none";

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  std::string text(const std::string& name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? "" : found->second;
  }
  bool has(const std::string& name) const { return !text(name).empty(); }

  /// Returns the first of `names` that is set.
  std::string first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (has(name)) return name;
    return {};
  }

  std::string needed_text(const std::string& name) const {
    if (!has(name)) throw ConfigError(cat("environment: ", name, " is not set", kRemedy));
    return text(name);
  }

  int64_t needed(const std::string& name, int64_t least, int64_t most) const {
    const std::string value = needed_text(name);
    const std::optional<int64_t> number = parse_whole_number(value);
    if (!number || *number < least || *number > most)
      throw ConfigError(
          cat("environment: ", name, "=", value, ": expected a whole number from ", least, " to ", most, kRemedy));
    return *number;
  }

 private:
  const Environment& environment_;
};

constexpr int64_t kMostRanks = 1'000'000;
constexpr int64_t kMostPort = 65535;

/// The names of the variables with these numbers. A rank is below its size.
struct RankNames {
  std::string rank, size, local_rank, local_size;  ///< no local_size: unknown
};

LaunchInfo read_numbers(const Variables& variables, const RankNames& names) {
  LaunchInfo info;
  info.size = variables.needed(names.size, 1, kMostRanks);
  info.rank = variables.needed(names.rank, 0, info.size - 1);
  if (info.size == 1) return info;
  info.local_size =
      variables.has(names.local_size) ? variables.needed(names.local_size, 1, info.size) : int64_t{info.size};
  info.local_rank = variables.needed(names.local_rank, 0, info.local_size - 1);
  if (info.local_rank > info.rank)
    throw ConfigError(cat("environment: ", names.local_rank, "=", info.local_rank, " is above ", names.rank, "=",
                          info.rank, kRemedy));
  info.interface = variables.text("GLOO_SOCKET_IFNAME");
  info.secret = variables.text(kSecretVariable);
  return info;
}

/// Returns a port below those that systems assign. It is the same for all ranks of a job, and usually different for two
/// jobs.
int64_t port_for(const std::string& job) {
  return 15000 + static_cast<int64_t>(std::stoull(ContentHash().add(job).hex().substr(0, 8), nullptr, 16) % 15000);
}

/// MASTER_ADDR and MASTER_PORT take precedence over what the launcher says.
void find_store(const Variables& variables, const std::string& address, const std::string& job, LaunchInfo& info) {
  info.attempt = job;
  info.address = variables.has("MASTER_ADDR") ? variables.text("MASTER_ADDR") : address;
  if (variables.has("MASTER_PORT"))
    info.port = variables.needed("MASTER_PORT", 1, kMostPort);
  else if (!job.empty())
    info.port = port_for(job);
  if (info.address.empty() || info.port == 0)
    throw ConfigError(
        cat("environment: where rank 0 is to be found is not known: set MASTER_ADDR (the host that rank 0 ",
            "runs on) and MASTER_PORT (a free port there) for all ranks"));
}

std::optional<LaunchInfo> read_torchrun(const Variables& variables) {
  if (!variables.has("RANK") && !variables.has("WORLD_SIZE")) return std::nullopt;
  LaunchInfo info = read_numbers(variables, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"});
  info.launcher = variables.has("LANCET_RANK_LOG") ? "lancet launch" : "torchrun";
  info.has_own_log = variables.has("LANCET_RANK_LOG");
  if (info.size == 1) return info;
  info.address = variables.needed_text("MASTER_ADDR");
  info.port = variables.needed("MASTER_PORT", 1, kMostPort);
  info.attempt = cat(variables.text("TORCHELASTIC_RUN_ID"), ".", variables.text("TORCHELASTIC_RESTART_COUNT"));
  if (variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True") info.store_host = StoreHost::kAgent;
  return info;
}

/// Reads "2(x3),1" and returns the number of tasks on node `node`; 0 if the text does not say it.
int64_t tasks_on_node(const std::string& per_node, int64_t node) {
  size_t at = 0;
  while (at < per_node.size()) {
    char* end = nullptr;
    const int64_t tasks = std::strtoll(per_node.c_str() + at, &end, 10);
    at = static_cast<size_t>(end - per_node.c_str());
    int64_t nodes = 1;
    if (per_node.compare(at, 2, "(x") == 0) {
      nodes = std::strtoll(per_node.c_str() + at + 2, &end, 10);
      at = per_node.find(')', at) + 1;
      if (at == 0) return 0;
    }
    if (tasks < 1 || nodes < 1) return 0;
    if (node < nodes) return tasks;
    node -= nodes;
    if (at < per_node.size() && per_node[at++] != ',') return 0;
  }
  return 0;
}

/// For Slurm, a batch script and a shell in an allocation are steps, too: they have one task and very high step
/// numbers.
bool is_slurm_step(const Variables& variables) {
  constexpr int64_t kFirstSpecialStep = 0xfffffff0;
  return variables.has("SLURM_STEP_ID") && variables.has("SLURM_PROCID") && variables.has("SLURM_STEP_NUM_TASKS") &&
         variables.needed("SLURM_STEP_ID", 0, std::numeric_limits<int64_t>::max()) < kFirstSpecialStep;
}

std::optional<LaunchInfo> read_slurm(const Variables& variables) {
  if (!is_slurm_step(variables)) return std::nullopt;
  LaunchInfo info = read_numbers(variables, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""});
  info.launcher = "Slurm";
  if (info.size == 1) return info;
  const int64_t node = variables.has("SLURM_NODEID") ? variables.needed("SLURM_NODEID", 0, kMostRanks) : 0;
  if (const int64_t tasks = tasks_on_node(variables.text("SLURM_STEP_TASKS_PER_NODE"), node); tasks > 0)
    info.local_size = tasks;
  const bool one_node = variables.text("SLURM_STEP_NUM_NODES") == "1";
  find_store(variables, one_node ? "127.0.0.1" : first_host(variables.text("SLURM_STEP_NODELIST")),
             cat(variables.text("SLURM_JOB_ID"), ".", variables.text("SLURM_STEP_ID")), info);
  return info;
}

std::optional<LaunchInfo> read_open_mpi(const Variables& variables) {
  const bool is_open = variables.has("OMPI_COMM_WORLD_RANK") || variables.has("OMPI_COMM_WORLD_SIZE");
  if (!is_open && !variables.has("PMI_RANK") && !variables.has("PMI_SIZE")) return std::nullopt;
  LaunchInfo info = is_open ? read_numbers(variables, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                                       "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"})
                            : read_numbers(variables, {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"});
  info.launcher = is_open ? "OpenMPI" : "PMI";
  if (info.size == 1) return info;
  const bool knows_local_size = variables.has(is_open ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "MPI_LOCALNRANKS");
  const bool one_host = knows_local_size && info.local_size == info.size;
  const std::string job = variables.first_of({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_PORT", "PMI_KVS"});
  find_store(variables, one_host ? "127.0.0.1" : "", job.empty() ? "" : variables.text(job), info);
  return info;
}

}  // namespace

std::string first_host(const std::string& node_list) {
  std::string host;
  for (size_t i = 0; i < node_list.size() && node_list[i] != ','; ++i) {
    if (node_list[i] != '[') {
      host += node_list[i];
      continue;
    }
    const size_t end = node_list.find(']', i);
    const size_t first_end = node_list.find_first_of("-,]", i);
    if (end == std::string::npos) return {};
    host += node_list.substr(i + 1, first_end - i - 1);
    i = end;
  }
  return host;
}

LaunchInfo read_launch(const Environment& environment, Launcher launcher) {
  struct Row {
    Launcher launcher;
    const char* expected;
    std::optional<LaunchInfo> (*read)(const Variables&);
  };
  static constexpr Row kRows[] = {
      {Launcher::kTorchrun, "torchrun: RANK and WORLD_SIZE are not set", read_torchrun},
      {Launcher::kSlurm, "slurm: SLURM_PROCID and SLURM_STEP_NUM_TASKS of a step are not set: start with srun",
       read_slurm},
      {Launcher::kOpenMpi, "openmpi: neither OMPI_COMM_WORLD_RANK nor PMI_RANK is set: start with mpirun",
       read_open_mpi}};
  if (launcher == Launcher::kNone) return {};
  const Variables variables(environment);
  for (const Row& row : kRows) {
    if (launcher != Launcher::kAuto && launcher != row.launcher) continue;
    if (std::optional<LaunchInfo> info = row.read(variables)) return *info;
    if (launcher == row.launcher) throw ConfigError(cat("--launcher ", row.expected));
  }
  return {};
}

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return environment;
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kPoll{100};

/// Says which ranks are missing, and which are there.
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

/// Ranks on several hosts cannot connect if one of them has the address 127.0.0.1.
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

/// Members are destroyed in reverse order: the connections first, the watch last.
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
      // the store is gone, and so is everybody who would read that this rank leaves
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
      // The first rank that gives up tells the ranks that have come; it may be the one that serves the store.
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
