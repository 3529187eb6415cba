// Machines that are invented here, one oddity each.
#include "lancet/doctor/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/byte_units.h"

namespace lancet {
namespace {

using testing::kGB;

GpuIdentity gpu_identity(int64_t index, int64_t physical, const std::string& name = "NVIDIA H100") {
  return {index, physical, "GPU-" + std::to_string(physical), "0000:00", name, 80 * kGB, 90, std::nullopt};
}

/// Two equal GPUs with nothing to say about them.
MachineFacts good_machine() {
  MachineFacts facts;
  facts.host = "node1";
  facts.host_resolves = true;
  facts.versions = {"0.1.0", "2.11.0", 13000, "2.28.9", true};
  facts.gpus_on_bus = 2;
  facts.driver = {true, "", "580.65.06", 13000, 2, {gpu_identity(0, 0), gpu_identity(1, 1)}, {}};
  facts.usable_gpus = 2;
  facts.gpus = {{80 * kGB, kGB}, {80 * kGB, kGB}};
  facts.copies = {{"cpu", "cuda:0", 25e9}, {"cuda:0", "cuda:1", 300e9}};
  facts.all_reduce = {2, "cuda:0", 40e9, ""};
  facts.cpu = {"EPYC", 32, {}, {"avx2", "avx512f"}, 32};
  facts.products = {1e12, 2e12};
  facts.memory = HostMemory{256 * kGB, 200 * kGB, {}};
  facts.folders = {{"current folder", "/home/me", true, 1, 500 * kGB, 1000 * kGB, 0},
                   {"/dev/shm", "/dev/shm", true, 2, 128 * kGB, 128 * kGB, 0}};
  facts.limits = {1 << 20, {}, {}};
  return facts;
}

MachineFacts machine_without_gpus() {
  MachineFacts facts = good_machine();
  facts.gpus_on_bus = 0;
  facts.driver = {};
  facts.usable_gpus = 0;
  facts.gpus.clear();
  facts.copies.clear();
  return facts;
}

/// Findings that are not ok, as "state topic: what -> remedy".
std::string oddities(const MachineFacts& facts) {
  std::string text;
  for (const Finding& finding : diagnose(facts))
    if (finding.state != FindingState::kOk)
      text += std::string(state_name(finding.state)) + " " + finding.topic + ": " + finding.what + " -> " +
              finding.remedy + "\n";
  return text;
}

std::string everything(const MachineFacts& facts) {
  std::string text;
  for (const Finding& finding : diagnose(facts)) text += finding.topic + ": " + finding.what + "\n";
  return text;
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " not in:\n" << text;
}

TEST(Doctor, FindsNothingOnAGoodMachine) {
  EXPECT_EQ(oddities(good_machine()), "");
  EXPECT_EQ(overall_state(diagnose(good_machine())), FindingState::kOk);
  expect_parts(everything(good_machine()), {"cuda:1 = GPU 1, GPU-1, NVIDIA H100, 80.0 GB, 79.0 GB free", "NCCL 2.28.9",
                                            "driver 580.65.06, runs CUDA up to 13.0", "cpu to cuda:0: 25.0 GB/s",
                                            "peer access: between all GPUs", "bf16 2000.0 GFLOP/s"});
}

TEST(Doctor, IsContentWithoutAGpu) {
  EXPECT_EQ(oddities(machine_without_gpus()), "");
  expect_parts(everything(machine_without_gpus()), {"devices: no GPU: jobs run on the CPU"});
}

TEST(Doctor, NamesNumericsThatSomethingElseSet) {
  MachineFacts facts = good_machine();
  facts.numerics = {.tf32 = true, .cudnn_attention = true};
  expect_parts(oddities(facts),
               {"problem numerics: torch is set to TF32, cuDNN's attention", "lancet::set_numerics()"});
}

TEST(Doctor, NamesTheKernelsOfGpus) {
  MachineFacts facts = good_machine();
  facts.kernels = "own";
  EXPECT_EQ(oddities(facts), "");
  expect_parts(everything(facts), {"kernels: lancet's own"});
  expect_parts(to_json(diagnose(facts), facts), {R"("kernels": "own")"});
  facts.kernels = "torch";
  expect_parts(oddities(facts), {"note kernels: element-wise operations on GPUs: torch, which is slower"});
}

TEST(Doctor, NamesADriverThatIsTooOld) {
  MachineFacts facts = good_machine();
  facts.driver.version = "550.54.15";
  facts.driver.cuda_version = 12040;
  facts.usable_gpus = 0;
  facts.gpu_failure = "The NVIDIA driver on your system is too old";
  const std::string text = oddities(facts);
  expect_parts(text,
               {"problem driver: driver 550.54.15 can run CUDA 12.4: expected 13.0 -> install NVIDIA's driver 580",
                "problem devices: 2 NVIDIA GPU(s), but none can be used: The NVIDIA driver on your system is too old"});
  EXPECT_EQ(overall_state(diagnose(facts)), FindingState::kProblem);
}

TEST(Doctor, TakesAnOlderDriverOfTheSameMajorVersion) {
  MachineFacts facts = good_machine();
  facts.versions.cuda_runtime = 13020;
  EXPECT_EQ(oddities(facts), "");
}

TEST(Doctor, MissesTheDriverOfAGpuOnTheBus) {
  MachineFacts facts = machine_without_gpus();
  facts.gpus_on_bus = 4;
  expect_parts(oddities(facts), {"problem devices: 4 NVIDIA GPU(s) on the bus, but no driver", "--gpus all"});
}

TEST(Doctor, TellsHiddenGpusFromMissingOnes) {
  MachineFacts facts = machine_without_gpus();
  facts.gpus_on_bus = 4;
  facts.driver.is_there = true;
  facts.driver.cuda_version = 13000;
  facts.driver.physical_gpus = 4;
  facts.driver.problem = "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected";
  facts.visible_devices = "";
  const std::string text = oddities(facts);
  expect_parts(text, {"note devices: no GPU: CUDA_VISIBLE_DEVICES=\"\" shows none of this machine's 4", "unset"});
  EXPECT_EQ(text.find("problem"), std::string::npos) << text;
}

TEST(Doctor, ShowsBothNumbersOfGpusThatAreNumberedAnew) {
  MachineFacts facts = good_machine();
  facts.visible_devices = "3,2";
  facts.driver.physical_gpus = 4;
  facts.driver.gpus = {gpu_identity(0, 3), gpu_identity(1, 2)};
  expect_parts(everything(facts), {"cuda:0 = GPU 3, GPU-3", "cuda:1 = GPU 2, GPU-2",
                                   "CUDA_VISIBLE_DEVICES=\"3,2\": 2 of the machine's 4 GPUs are seen"});
}

TEST(Doctor, NotesMixedModelsAndBusyGpus) {
  MachineFacts facts = good_machine();
  facts.driver.gpus[1].name = "NVIDIA A100";
  facts.gpus[1].used_bytes = 60 * kGB;
  expect_parts(oddities(facts),
               {"note devices: GPUs of 2 models: NVIDIA A100, NVIDIA H100",
                "note devices: cuda:1 = GPU 1, GPU-1, NVIDIA A100, 80.0 GB, 20.0 GB free -> other processes"});
}

TEST(Doctor, RefusesGpusThatTorchHasNoCodeFor) {
  MachineFacts facts = good_machine();
  facts.driver.gpus[0].capability = 70;
  expect_parts(oddities(facts), {"problem devices: cuda:0", "compute capability 7.0: expected 7.5 or newer"});
}

TEST(Doctor, NotesWhatSlowsCopies) {
  MachineFacts facts = good_machine();
  facts.driver.no_peer = {{0, 1}};
  facts.copies[0].bytes_per_s = 1.5e9;
  expect_parts(oddities(facts),
               {"note peer access: none between cuda:0 - cuda:1", "note copies: cpu to cuda:0: 1.5 GB/s -> slow"});
}

TEST(Doctor, NamesRanksThatDoNotReachEachOther) {
  MachineFacts facts = good_machine();
  facts.all_reduce = {0, "", 0, "connecting the ranks of the job: no route"};
  const auto findings = diagnose(facts);
  const auto at = std::find_if(findings.begin(), findings.end(),
                               [](const Finding& finding) { return finding.state == FindingState::kProblem; });
  ASSERT_NE(at, findings.end());
  EXPECT_NE(at->what.find("no route"), std::string::npos);
  EXPECT_NE(at->remedy.find("GLOO_SOCKET_IFNAME"), std::string::npos);
}

TEST(Doctor, NotesWhatSlowsTheProcessor) {
  MachineFacts facts = machine_without_gpus();
  facts.cpu.instructions.clear();
  facts.cpu.quota = 4.0;
  facts.products.bf16 = 1e11;
  expect_parts(oddities(facts), {"no AVX2", "32 threads for 4.0 core(s) that the container may use",
                                 "set run.threads: 4", "bf16 is less than half as fast as f32"});
}

TEST(Doctor, NotesLimitsThatLongJobsMeet) {
  MachineFacts facts = good_machine();
  facts.limits = {256, 65536, 8 * kGB};
  facts.has_infiniband = true;
  facts.folders[1].total_bytes = 64'000'000;
  facts.host_resolves = false;
  facts.memory->available_bytes = 1'000'000;
  expect_parts(oddities(facts),
               {"open files: 256", "locked memory: 65.5 kB", "address space: 8.0 GB", "/dev/shm: 64.0 MB", "--shm-size",
                "\"node1\", has no address", "problem memory: 256.0 GB, 1.0 MB available"});
}

TEST(Doctor, LooksAtRoomForAllThatGoesToOneDisk) {
  std::vector<FolderFacts> folders{{"output", "/data/out", true, 7, 20 * kGB, 100 * kGB, 16 * kGB},
                                   {"cache", "/data/cache", true, 7, 20 * kGB, 100 * kGB, 8 * kGB}};
  const std::vector<Finding> together = diagnose_folders(folders);
  EXPECT_EQ(together[0].state, FindingState::kProblem);
  expect_parts(together[0].what, {"20.0 GB free", "the job writes 16.0 GB", "together 24.0 GB"});
  folders[1].file_system = 8;
  EXPECT_EQ(overall_state(diagnose_folders(folders)), FindingState::kOk);
}

TEST(Doctor, NeedsToWriteWhereTheJobWrites) {
  const FolderFacts output{"output", "/data", false, 7, 20 * kGB, 100 * kGB, 0};
  FolderFacts current = output;
  current.role = "current folder";
  EXPECT_EQ(overall_state(diagnose_folders({output})), FindingState::kProblem);
  EXPECT_EQ(overall_state(diagnose_folders({current})), FindingState::kNote);
}

TEST(Doctor, BearsAMachineThatTellsNothing) {
  EXPECT_NE(oddities(MachineFacts()).find("note memory"), std::string::npos);
  const auto json = nlohmann::json::parse(to_json(diagnose(MachineFacts()), MachineFacts()));
  EXPECT_EQ(json["facts"]["memory"], nullptr);
  EXPECT_EQ(json["facts"]["gpus"].size(), 0U);
}

TEST(Doctor, TellsFactsAsJson) {
  const MachineFacts facts = good_machine();
  const auto json = nlohmann::json::parse(to_json(diagnose(facts), facts));
  EXPECT_EQ(json["state"], "ok");
  EXPECT_EQ(json["facts"]["gpus"][1]["physical_index"], 1);
  EXPECT_EQ(json["facts"]["gpus"][1]["used_bytes"], kGB);
  EXPECT_EQ(json["facts"]["copies"][0]["bytes_per_s"], 25e9);
}

TEST(Doctor, LooksAtTheNearestFolderThatIsThere) {
  const FolderFacts facts = look_at_folder("output", "/tmp/surely/not/there");
  EXPECT_EQ(facts.path, std::filesystem::canonical("/tmp"));
  EXPECT_TRUE(facts.is_writable);
  EXPECT_GT(facts.total_bytes, 0);
}

TEST(Doctor, SaysNothingOfDevicesThatNobodyAskedToCheck) {
  EXPECT_TRUE(diagnose_device_checks(good_machine()).empty());
  EXPECT_EQ(everything(good_machine()).find("device checks"), std::string::npos);
}

TEST(Doctor, TellsWhatEachCheckOfDevicesFound) {
  MachineFacts facts = good_machine();
  facts.device_checks = {{DeviceCheckKind::kBytes, {"cuda:0"}, "", 0},
                         {DeviceCheckKind::kPair, {"cuda:0", "cuda:1"}, "", 250e9},
                         {DeviceCheckKind::kPair, {"cuda:1", "cuda:0"}, "3 of 8 bytes are wrong", 0},
                         {DeviceCheckKind::kAllReduce, {"cuda:0", "cuda:1"}, "timed out", 0}};
  expect_parts(everything(facts), {"device bytes: cuda:0: 32 MiB there and back, every byte\n",
                                   "device pairs: cuda:0 to cuda:1: 32 MiB, every byte, 250.0 GB/s\n"});
  expect_parts(oddities(facts), {"problem device pairs: cuda:1 to cuda:0: 3 of 8 bytes are wrong -> ", "IOMMU",
                                 "problem sum of ranks: cuda:0, cuda:1: timed out -> NCCL_DEBUG=INFO"});
  EXPECT_EQ(overall_state(diagnose(facts)), FindingState::kProblem);
  const nlohmann::json checks = nlohmann::json::parse(to_json(diagnose(facts), facts))["facts"]["device_checks"];
  ASSERT_EQ(checks.size(), 4u);
  EXPECT_EQ(checks[1]["check"], "pair");
  EXPECT_EQ(checks[1]["devices"], (std::vector<std::string>{"cuda:0", "cuda:1"}));
  EXPECT_EQ(checks[1]["bytes_per_s"], 250e9);
  EXPECT_EQ(checks[2]["failure"], "3 of 8 bytes are wrong");
}

TEST(Doctor, SaysWhatChecksOfDevicesDidNotLookAt) {
  MachineFacts facts = machine_without_gpus();
  EXPECT_TRUE(nlohmann::json::parse(to_json({}, facts))["facts"]["device_checks"].is_null());
  facts.device_checks.emplace();
  expect_parts(oddities(facts), {"note device checks: no GPU: nothing was checked", "copies between each two"});
  facts.device_checks = {{DeviceCheckKind::kBytes, {"cuda:0"}, "", 0}};
  expect_parts(oddities(facts), {"note device checks: one device: copies between devices and sums of ranks were not"});
}

}  // namespace
}  // namespace lancet
