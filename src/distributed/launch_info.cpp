// Variables: torchrun (torch.distributed.run, "Environment Variables"), srun ("OUTPUT ENVIRONMENT VARIABLES"),
// mpirun of Open MPI ("The environment variables that are set at run time") and PMI-1 as MPICH's hydra sets it.
#include "lancet/distributed/launch_info.h"

#include <unistd.h>

#include <limits>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"

namespace lancet {
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

  /// The first of `names` that is set.
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

/// Numbers whose variables are named; a rank is below its size.
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

/// Ports below the ones that systems hand out; the same for all ranks of a job, and not the same for two jobs, mostly.
int64_t port_for(const std::string& job) {
  return 15000 + static_cast<int64_t>(std::stoull(ContentHash().add(job).hex().substr(0, 8), nullptr, 16) % 15000);
}

/// MASTER_ADDR and MASTER_PORT go before what the launcher says.
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

/// "2(x3),1" -> tasks on node `node`; 0 when it does not say.
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

/// A batch script and a shell in an allocation are steps to Slurm, of one task and with numbers from the top.
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

}  // namespace lancet
