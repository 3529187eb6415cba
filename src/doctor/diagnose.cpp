// The rules about machines: one function for each topic.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>

#include "lancet/core/strings.h"
#include "lancet/doctor/doctor.h"
#include "size_text.h"

namespace lancet {
namespace {

constexpr int64_t kCuda = 13000;               ///< used if torch does not say with which version it was built
constexpr const char* kDriverForCuda = "580";  ///< the first driver that runs CUDA 13
constexpr int64_t kLeastCapability = 75;  ///< compute capability of the oldest GPUs for which CUDA 13 has code: Turing
constexpr double kSlowCopy = 4e9;         ///< bytes/s; PCIe 3 with 16 lanes reaches three times as much
constexpr int64_t kLowMemory = 1'000'000'000;
constexpr int64_t kSmallSharedMemory = 500'000'000;  ///< containers have 64 MB by default
constexpr int64_t kFewFiles = 1024;
constexpr double kBusyShare = 0.1;

using Findings = std::vector<Finding>;

std::string cuda_text(int64_t version) { return cat(version / 1000, ".", version % 1000 / 10); }

std::string tenths(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

void add_versions(const MachineFacts& facts, Findings& findings) {
  const Versions& versions = facts.versions;
  findings.push_back({FindingState::kOk, "versions",
                      cat("lancet ", versions.lancet, ", torch ", versions.torch, ", CUDA ",
                          versions.cuda_runtime > 0 ? cuda_text(versions.cuda_runtime) : "not loaded"),
                      ""});
}

void add_numerics(const MachineFacts& facts, Findings& findings) {
  std::vector<std::string> on;
  if (facts.numerics.tf32) on.push_back("TF32");
  if (facts.numerics.reduced_sums) on.push_back("sums of 16-bit products in 16 bits");
  if (facts.numerics.cudnn_attention) on.push_back("cuDNN's attention");
  if (on.empty())
    findings.push_back({FindingState::kOk, "numerics", "no TF32, sums of 16-bit products in f32", ""});
  else
    findings.push_back({FindingState::kProblem, "numerics", cat("torch is set to ", join(on)),
                        "another library of this process set it: call lancet::set_numerics() after it"});
}

void add_kernels(const MachineFacts& facts, Findings& findings) {
  if (!facts.kernels) return;
  if (*facts.kernels == "own")
    findings.push_back({FindingState::kOk, "kernels", "lancet's own for the element-wise operations on GPUs", ""});
  else
    findings.push_back({FindingState::kNote, "kernels",
                        cat("element-wise operations on GPUs: ", *facts.kernels, ", which is slower"),
                        "a warning on stderr says why; unset LANCET_KERNELS where it is set to torch"});
}

/// Describes machines without usable GPUs.
Finding without_gpus(const MachineFacts& facts) {
  const int64_t there = std::max(facts.gpus_on_bus, facts.driver.physical_gpus.value_or(0));
  if (facts.visible_devices && facts.driver.is_there && there > 0 && facts.driver.gpus.empty())
    return {FindingState::kNote, "devices",
            cat("no GPU: CUDA_VISIBLE_DEVICES=\"", *facts.visible_devices, "\" shows none of this machine's ", there,
                ": jobs run on the CPU"),
            "unset CUDA_VISIBLE_DEVICES, or set it to numbers or UUIDs that `nvidia-smi -L` lists"};
  if (there > 0 && !facts.driver.is_there)
    return {FindingState::kProblem, "devices",
            cat(there, " NVIDIA GPU(s) on the bus, but no driver (libcuda.so.1): jobs run on the CPU"),
            cat("install NVIDIA's driver ", kDriverForCuda, " or newer; start a container with --gpus all")};
  if (there > 0 || !facts.driver.gpus.empty())
    return {FindingState::kProblem, "devices",
            cat(std::max<int64_t>(there, static_cast<int64_t>(facts.driver.gpus.size())),
                " NVIDIA GPU(s), but none can be used: ",
                !facts.driver.problem.empty() ? facts.driver.problem
                : !facts.gpu_failure.empty()  ? facts.gpu_failure
                                              : "torch finds none"),
            "see \"driver\"; `nvidia-smi` must list the GPUs, in a container too"};
  return {FindingState::kOk, "devices", "no GPU: jobs run on the CPU", ""};
}

Finding describe_gpu(const GpuIdentity& gpu, const MachineFacts& facts) {
  Finding finding{FindingState::kOk, "devices", cat(label(gpu), ", ", size_text(gpu.total_bytes)), ""};
  const auto index = static_cast<size_t>(gpu.index);
  if (index < facts.gpus.size()) {
    const GpuMemory& memory = facts.gpus[index];
    finding.what += cat(", ", size_text(memory.total_bytes - memory.used_bytes), " free");
    if (static_cast<double>(memory.used_bytes) > kBusyShare * static_cast<double>(memory.total_bytes)) {
      finding.state = FindingState::kNote;
      finding.remedy =
          "other processes use the rest (`nvidia-smi` lists them): end them, or name other devices in run.devices";
    }
  }
  if (gpu.capability > 0 && gpu.capability < kLeastCapability) {
    finding.state = FindingState::kProblem;
    finding.what += cat(", compute capability ", gpu.capability / 10, ".", gpu.capability % 10, ": expected ",
                        kLeastCapability / 10, ".", kLeastCapability % 10, " or newer");
    finding.remedy = "this torch has no code for it: leave it out of CUDA_VISIBLE_DEVICES";
  }
  return finding;
}

void add_devices(const MachineFacts& facts, Findings& findings) {
  if (facts.usable_gpus == 0) return findings.push_back(without_gpus(facts));
  std::set<std::string> models;
  for (const GpuIdentity& gpu : facts.driver.gpus) {
    findings.push_back(describe_gpu(gpu, facts));
    models.insert(gpu.name);
  }
  if (facts.visible_devices)
    findings.push_back({FindingState::kNote, "devices",
                        cat("CUDA_VISIBLE_DEVICES=\"", *facts.visible_devices, "\": ", facts.driver.gpus.size(), " of ",
                            facts.driver.physical_gpus ? cat("the machine's ", *facts.driver.physical_gpus) : "its",
                            " GPUs are seen, numbered anew as above"),
                        "name devices in run.devices by the numbers before the equals sign"});
  if (models.size() > 1)
    findings.push_back({FindingState::kNote, "devices",
                        cat("GPUs of ", models.size(), " models: ", join(std::vector(models.begin(), models.end()))),
                        "ranks with one GPU each wait for the slowest: give ranks equal GPUs, or name those to use in "
                        "run.devices"});
  if (!facts.gpu_failure.empty())
    findings.push_back({FindingState::kProblem, "devices", "a test on the GPUs failed: " + facts.gpu_failure,
                        "run `nvidia-smi -q` and look for errors; restart the machine or leave that GPU out"});
}

void add_driver(const MachineFacts& facts, Findings& findings) {
  const GpuDriver& driver = facts.driver;
  if (!driver.is_there) return;
  const int64_t needed = facts.versions.cuda_runtime > 0 ? facts.versions.cuda_runtime : kCuda;
  const std::string name = driver.version.empty() ? "a driver of unknown version" : "driver " + driver.version;
  if (driver.cuda_version == 0)
    findings.push_back({FindingState::kNote, "driver", name + ": does not say which CUDA it can run", ""});
  else if (driver.cuda_version / 1000 < needed / 1000)  // older drivers with the same major version work
    findings.push_back({FindingState::kProblem, "driver",
                        cat(name, " can run CUDA ", cuda_text(driver.cuda_version), ": expected ", cuda_text(needed)),
                        cat("install NVIDIA's driver ", kDriverForCuda, " or newer")});
  else
    findings.push_back(
        {FindingState::kOk, "driver", cat(name, ", runs CUDA up to ", cuda_text(driver.cuda_version)), ""});
}

void add_collectives(const MachineFacts& facts, Findings& findings) {
  const Versions& versions = facts.versions;
  findings.push_back(
      {versions.has_gloo && !versions.nccl.empty() ? FindingState::kOk : FindingState::kNote, "collectives",
       cat("NCCL ", versions.nccl.empty() ? "is missing" : versions.nccl, ", Gloo ",
           versions.has_gloo ? "is there" : "is missing"),
       versions.has_gloo && !versions.nccl.empty() ? "" : "jobs of several processes need both: reinstall torch"});
  const ReduceRate& reduce = facts.all_reduce;
  if (!reduce.failure.empty())
    findings.push_back({FindingState::kProblem, "collectives",
                        cat("ranks on this host do not reach each other: ", reduce.failure),
                        "set GLOO_SOCKET_IFNAME to a network interface of this host, lo for jobs on it alone"});
  else if (reduce.ranks > 0)
    findings.push_back({FindingState::kOk, "collectives",
                        cat("all_reduce of 16 MB over ", reduce.ranks, " ranks on ", reduce.device, ": ",
                            tenths(reduce.bytes_per_s / 1e9), " GB/s"),
                        ""});
  if (!facts.host_resolves)
    findings.push_back(
        {FindingState::kNote, "collectives",
         cat("this host's name, \"", facts.host,
             "\", has no address: processes on several machines may "
             "not find each other"),
         "add it to /etc/hosts, or set GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME to the network interface"});
}

void add_copies(const MachineFacts& facts, Findings& findings) {
  if (facts.driver.gpus.size() > 1) {
    std::vector<std::string> pairs;
    for (const auto& [a, b] : facts.driver.no_peer) pairs.push_back(cat(device_name(a), " - ", device_name(b)));
    findings.push_back(
        {pairs.empty() ? FindingState::kOk : FindingState::kNote, "peer access",
         pairs.empty() ? "between all GPUs" : "none between " + join(pairs) + ": copies go through the host's memory",
         pairs.empty() ? ""
                       : "put layers that follow each other on GPUs with peer access: order run.devices accordingly"});
  }
  for (const CopyRate& copy : facts.copies) {
    const bool is_slow = copy.bytes_per_s < kSlowCopy;
    findings.push_back(
        {is_slow ? FindingState::kNote : FindingState::kOk, "copies",
         cat(copy.from, " to ", copy.to, ": ", tenths(copy.bytes_per_s / 1e9), " GB/s"),
         is_slow ? "slow: `nvidia-smi -q` shows the link's generation and width; keep layers off this way" : ""});
  }
}

void add_cpu(const MachineFacts& facts, Findings& findings) {
  const CpuFacts& cpu = facts.cpu;
  const auto rate = [](double operations) { return tenths(operations / 1e9) + " GFLOP/s"; };
  findings.push_back({FindingState::kOk, "processor",
                      cat(cpu.model.empty() ? "" : cpu.model + ", ", cpu.cores, " core(s), ",
                          cpu.instructions.empty() ? "no AVX2" : join(cpu.instructions), "; ", cpu.threads,
                          " thread(s): f32 ", rate(facts.products.f32), ", bf16 ", rate(facts.products.bf16)),
                      ""});
  if (std::find(cpu.instructions.begin(), cpu.instructions.end(), "avx2") == cpu.instructions.end())
    findings.push_back(
        {FindingState::kNote, "processor", "no AVX2: work on the CPU is several times slower than elsewhere", ""});
  const double usable =
      cpu.quota ? std::min(*cpu.quota, static_cast<double>(cpu.cores)) : static_cast<double>(cpu.cores);
  if (cpu.cores > 0 && static_cast<double>(cpu.threads) > std::ceil(usable))
    findings.push_back({FindingState::kNote, "processor",
                        cat(cpu.threads, " threads for ", tenths(usable), " core(s)",
                            cpu.quota ? " that the container may use" : "", ": they wait for each other"),
                        cat("set run.threads: ", static_cast<int64_t>(std::max(1.0, std::floor(usable))))});
  if (facts.products.bf16 > 0 && facts.products.bf16 < facts.products.f32 / 2)
    findings.push_back({FindingState::kNote, "processor", "bf16 is less than half as fast as f32 on this CPU",
                        "jobs that run on it: set run.dtype: f32 where memory allows"});
}

void add_memory(const MachineFacts& facts, Findings& findings) {
  if (!facts.memory)
    return findings.push_back(
        {FindingState::kNote, "memory", "the system does not say how much there is (/proc/meminfo)", ""});
  const bool is_low = facts.memory->available_bytes < kLowMemory;
  findings.push_back({is_low ? FindingState::kProblem : FindingState::kOk, "memory",
                      cat(size_text(facts.memory->total_bytes), ", ", size_text(facts.memory->available_bytes),
                          " available", facts.memory->limit_bytes ? "; the control group's limit" : ""),
                      is_low ? "end other processes, or raise the container's limit" : ""});
}

void add_limits(const MachineFacts& facts, Findings& findings) {
  const ProcessLimits& limits = facts.limits;
  const auto note = [&](const std::string& what, const std::string& remedy) {
    findings.push_back({FindingState::kNote, "limits", what, remedy});
  };
  const size_t before = findings.size();
  if (limits.open_files && *limits.open_files < kFewFiles)
    note(cat("open files: ", *limits.open_files, ": checkpoints of many shards need more"), "ulimit -n 4096");
  if (limits.locked_bytes && facts.has_infiniband)
    note(cat("locked memory: ", size_text(*limits.locked_bytes), ": NCCL over InfiniBand needs more"),
         "ulimit -l unlimited");
  if (limits.address_bytes)
    note(cat("address space: ", size_text(*limits.address_bytes),
             ": mapped checkpoints and CUDA take far more than memory"),
         "ulimit -v unlimited");
  if (findings.size() == before)
    findings.push_back({FindingState::kOk, "limits",
                        cat("open files: ", limits.open_files ? cat(*limits.open_files) : "unlimited",
                            ", locked memory: ", limits.locked_bytes ? size_text(*limits.locked_bytes) : "unlimited"),
                        ""});
}

void add_shared_memory(const MachineFacts& facts, Findings& findings) {
  for (const FolderFacts& folder : facts.folders)
    if (folder.role == "/dev/shm" && folder.total_bytes < kSmallSharedMemory && facts.usable_gpus > 1)
      findings.push_back(
          {FindingState::kNote, "disk",
           cat("/dev/shm: ", size_text(folder.total_bytes), ": NCCL needs more between processes of one machine"),
           "start the container with --shm-size=1g or --ipc=host"});
}

}  // namespace

std::string_view state_name(FindingState state) {
  constexpr std::string_view kNames[] = {"ok", "note", "problem"};
  return kNames[static_cast<size_t>(state)];
}

FindingState overall_state(const std::vector<Finding>& findings) {
  FindingState worst = FindingState::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.state);
  return worst;
}

std::vector<Finding> diagnose(const MachineFacts& facts) {
  Findings findings;
  for (const auto add : {add_versions, add_numerics, add_kernels, add_devices, add_driver, add_collectives, add_copies,
                         add_cpu, add_memory, add_limits})
    add(facts, findings);
  for (Finding& finding : diagnose_folders(facts.folders)) findings.push_back(std::move(finding));
  add_shared_memory(facts, findings);
  for (Finding& finding : diagnose_device_checks(facts)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace lancet
