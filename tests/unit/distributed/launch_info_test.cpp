#include "lancet/distributed/rank_session.h"

#include <gtest/gtest.h>

#include "lancet/core/error.h"

namespace lancet {
namespace {

const Environment kTorchrun{{"RANK", "3"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "node1"},
                            {"MASTER_PORT", "29400"},
                            {"TORCHELASTIC_RUN_ID", "r7"},
                            {"TORCHELASTIC_RESTART_COUNT", "2"},
                            {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const Environment kSlurm{{"SLURM_JOB_ID", "4711"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_PROCID", "5"},
                         {"SLURM_STEP_NUM_TASKS", "7"},
                         {"SLURM_NTASKS", "99"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "2"},
                         {"SLURM_STEP_NUM_NODES", "4"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                         {"SLURM_STEP_NODELIST", "gpu[08-10,12]"}};
const Environment kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"PMIX_NAMESPACE", "prterun-host-77@1"}};

Environment with(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  return environment;
}

Environment without(Environment environment, const std::string& name) {
  environment.erase(name);
  return environment;
}

std::string error_of(const Environment& environment, Launcher launcher = Launcher::kAuto) {
  try {
    read_launch(environment, launcher);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReadLaunch, NothingIsAJobOfOneProcess) {
  for (const Environment& environment : {Environment{}, Environment{{"HOME", "/root"}, {"SLURM_JOB_ID", "1"}}}) {
    const LaunchInfo info = read_launch(environment, Launcher::kAuto);
    EXPECT_EQ(info.size, 1);
    EXPECT_EQ(info.rank, 0);
    EXPECT_EQ(info.launcher, "none");
  }
}

TEST(ReadLaunch, TakesTheJobsSecretUnderEveryLauncher) {
  for (const Environment& environment : {kTorchrun, kSlurm, kOpenMpi}) {
    EXPECT_EQ(read_launch(environment, Launcher::kAuto).secret, "");
    EXPECT_EQ(read_launch(with(environment, kSecretVariable, "7f3a"), Launcher::kAuto).secret, "7f3a");
  }
}

TEST(ReadLaunch, TakesTorchruns) {
  const LaunchInfo info = read_launch(kTorchrun, Launcher::kAuto);
  EXPECT_EQ(info.rank, 3);
  EXPECT_EQ(info.size, 8);
  EXPECT_EQ(info.local_rank, 1);
  EXPECT_EQ(info.local_size, 2);
  EXPECT_EQ(info.address, "node1");
  EXPECT_EQ(info.port, 29400);
  EXPECT_EQ(info.store_host, StoreHost::kAgent);
  EXPECT_EQ(info.launcher, "torchrun");
  EXPECT_FALSE(info.has_own_log);
  const LaunchInfo again = read_launch(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "3"), Launcher::kTorchrun);
  EXPECT_NE(again.attempt, info.attempt) << "a restart must not read what the first start left in the agent's store";
  const LaunchInfo by_hand = read_launch(without(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE"), Launcher::kAuto);
  EXPECT_EQ(by_hand.store_host, StoreHost::kRankZero);
  EXPECT_TRUE(read_launch(with(kTorchrun, "LANCET_RANK_LOG", "logs/rank-3.log"), Launcher::kAuto).has_own_log);
}

TEST(ReadLaunch, TakesSlurmsInsideAStepOfSeveralTasks) {
  const LaunchInfo info = read_launch(kSlurm, Launcher::kAuto);
  EXPECT_EQ(info.rank, 5);
  EXPECT_EQ(info.size, 7);
  EXPECT_EQ(info.local_rank, 1);
  EXPECT_EQ(info.local_size, 2);
  EXPECT_EQ(info.address, "gpu08");
  EXPECT_EQ(info.store_host, StoreHost::kRankZero);
  EXPECT_GE(info.port, 15000);
  EXPECT_LT(info.port, 30000);
  Environment last = with(with(with(kSlurm, "SLURM_PROCID", "6"), "SLURM_NODEID", "3"), "SLURM_LOCALID", "0");
  EXPECT_EQ(read_launch(last, Launcher::kAuto).port, info.port) << "all ranks must find the same port";
  EXPECT_EQ(read_launch(last, Launcher::kAuto).local_size, 1);
  EXPECT_NE(read_launch(with(kSlurm, "SLURM_STEP_ID", "1"), Launcher::kAuto).port, info.port);
  EXPECT_EQ(read_launch(with(kSlurm, "SLURM_STEP_NUM_NODES", "1"), Launcher::kAuto).address, "127.0.0.1");
  const LaunchInfo chosen =
      read_launch(with(with(kSlurm, "MASTER_ADDR", "ib0"), "MASTER_PORT", "1234"), Launcher::kSlurm);
  EXPECT_EQ(chosen.address, "ib0");
  EXPECT_EQ(chosen.port, 1234);
}

TEST(ReadLaunch, ABatchScriptOrOneTaskOfSlurmIsAJobOfOneProcess) {
  EXPECT_EQ(read_launch(with(kSlurm, "SLURM_STEP_ID", "4294967291"), Launcher::kAuto).size, 1);
  EXPECT_EQ(read_launch(without(kSlurm, "SLURM_STEP_ID"), Launcher::kAuto).size, 1);
  const Environment one =
      with(with(with(kSlurm, "SLURM_STEP_NUM_TASKS", "1"), "SLURM_PROCID", "0"), "SLURM_LOCALID", "0");
  EXPECT_EQ(read_launch(one, Launcher::kAuto).size, 1);
}

TEST(ReadLaunch, TakesOpenMpisAndPmis) {
  const LaunchInfo info = read_launch(kOpenMpi, Launcher::kAuto);
  EXPECT_EQ(info.rank, 1);
  EXPECT_EQ(info.size, 2);
  EXPECT_EQ(info.local_size, 2);
  EXPECT_EQ(info.address, "127.0.0.1");
  EXPECT_GE(info.port, 15000);
  EXPECT_EQ(info.launcher, "OpenMPI");
  const Environment spread = with(kOpenMpi, "OMPI_COMM_WORLD_SIZE", "4");
  EXPECT_NE(error_of(spread).find("set MASTER_ADDR"), std::string::npos);
  EXPECT_EQ(read_launch(with(spread, "MASTER_ADDR", "node1"), Launcher::kAuto).address, "node1");
  const LaunchInfo pmi = read_launch({{"PMI_RANK", "0"},
                                      {"PMI_SIZE", "2"},
                                      {"MPI_LOCALRANKID", "0"},
                                      {"MPI_LOCALNRANKS", "2"},
                                      {"PMI_PORT", "host:4567"}},
                                     Launcher::kAuto);
  EXPECT_EQ(pmi.size, 2);
  EXPECT_EQ(pmi.launcher, "PMI");
}

TEST(ReadLaunch, TorchrunGoesBeforeSlurmAndSlurmBeforeMpi) {
  Environment all = kSlurm;
  all.insert(kOpenMpi.begin(), kOpenMpi.end());
  EXPECT_EQ(read_launch(all, Launcher::kAuto).launcher, "Slurm");
  EXPECT_EQ(read_launch(all, Launcher::kOpenMpi).launcher, "OpenMPI");
  all.insert(kTorchrun.begin(), kTorchrun.end());
  EXPECT_EQ(read_launch(all, Launcher::kAuto).launcher, "torchrun");
  EXPECT_EQ(read_launch(all, Launcher::kNone).size, 1);
}

TEST(ReadLaunch, NamesTheVariableThatContradicts) {
  EXPECT_NE(error_of(with(kTorchrun, "RANK", "8")).find("RANK=8: expected a whole number from 0 to 7"),
            std::string::npos);
  EXPECT_NE(error_of(with(kTorchrun, "WORLD_SIZE", "two")).find("WORLD_SIZE=two"), std::string::npos);
  EXPECT_NE(error_of(with(kTorchrun, "RANK", "-1")).find("RANK=-1"), std::string::npos);
  EXPECT_NE(error_of(with(kTorchrun, "LOCAL_RANK", "2")).find("LOCAL_RANK=2"), std::string::npos);
  EXPECT_NE(error_of(with(with(kTorchrun, "RANK", "0"), "LOCAL_RANK", "1")).find("LOCAL_RANK=1 is above RANK=0"),
            std::string::npos);
  EXPECT_NE(error_of(with(kTorchrun, "LOCAL_WORLD_SIZE", "9")).find("LOCAL_WORLD_SIZE=9"), std::string::npos);
  EXPECT_NE(error_of(with(kTorchrun, "MASTER_PORT", "70000")).find("MASTER_PORT=70000"), std::string::npos);
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    const std::string error = error_of(without(kTorchrun, name));
    EXPECT_NE(error.find(std::string(name) + " is not set"), std::string::npos) << error;
    EXPECT_NE(error.find("--launcher none"), std::string::npos) << error;
  }
  EXPECT_NE(error_of(with(kSlurm, "SLURM_PROCID", "7")).find("SLURM_PROCID=7"), std::string::npos);
}

TEST(ReadLaunch, AnAskedForLauncherMustBeThere) {
  EXPECT_NE(error_of({}, Launcher::kTorchrun).find("--launcher torchrun"), std::string::npos);
  EXPECT_NE(error_of(kTorchrun, Launcher::kSlurm).find("srun"), std::string::npos);
  EXPECT_NE(error_of(kTorchrun, Launcher::kOpenMpi).find("mpirun"), std::string::npos);
}

TEST(FirstHost, ReadsSlurmsLists) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("node[03-05,7],other"), "node03");
  EXPECT_EQ(first_host("a,b[1-2]"), "a");
  EXPECT_EQ(first_host("r[2,4]n[010-012]-ib"), "r2n010-ib");
  EXPECT_EQ(first_host("broken[1-"), "");
  EXPECT_EQ(first_host(""), "");
}

}  // namespace
}  // namespace lancet
