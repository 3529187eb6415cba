// The rules about the results of checks on devices.
#include <algorithm>
#include <array>
#include <cstdio>

#include "lancet/core/strings.h"
#include "lancet/doctor/device_checks.h"
#include "lancet/doctor/doctor.h"

namespace lancet {
namespace {

struct CheckText {
  std::string_view name;    ///< name in JSON
  std::string_view topic;   ///< name in findings
  std::string_view passed;  ///< words that follow the devices' names
  std::string_view remedy;
};

constexpr std::array<CheckText, 5> kCheckTexts{
    {{"bytes", "device bytes", "32 MiB there and back, every byte",
      "leave this GPU out of run.devices; `nvidia-smi -q -d ECC,PAGE_RETIREMENT` shows errors of its memory"},
     {"products", "device products", "as the host's, in f32 and bf16",
      "leave this GPU out of run.devices; `nvidia-smi -q` shows errors; another torch may lack code for it"},
     {"pair", "device pairs", "32 MiB, every byte",
      "name no two such GPUs in one run.devices. On bare metal the IOMMU has to be off or in passthrough mode for "
      "copies from GPU to GPU; `nvidia-smi topo -p2p r` shows their ways. For ranks set NCCL_P2P_DISABLE=1"},
     {"split_model", "split model", "a forward pass as the host's",
      "see the lines above; where they are ok, please report it with `lancet doctor --json`"},
     {"all_reduce", "sum of ranks", "each sum exact",
      "NCCL_DEBUG=INFO shows what NCCL tries; NCCL_P2P_DISABLE=1 takes the way through the host's memory; give a "
      "container --shm-size=1g or --ipc=host"}}};

const CheckText& text_of(DeviceCheckKind kind) { return kCheckTexts.at(static_cast<size_t>(kind)); }

Finding describe_check(const DeviceCheck& check) {
  const CheckText& text = text_of(check.kind);
  const std::string devices = join(check.devices, check.kind == DeviceCheckKind::kPair ? " to " : ", ");
  if (!check.failure.empty())
    return {FindingState::kProblem, std::string(text.topic), cat(devices, ": ", check.failure),
            std::string(text.remedy)};
  std::array<char, 48> speed{};
  if (check.bytes_per_s > 0) std::snprintf(speed.data(), speed.size(), ", %.1f GB/s", check.bytes_per_s / 1e9);
  return {FindingState::kOk, std::string(text.topic), cat(devices, ": ", text.passed, speed.data()), ""};
}

bool is_of_several(const DeviceCheck& check) { return check.devices.size() > 1; }

}  // namespace

std::string_view check_name(DeviceCheckKind kind) { return text_of(kind).name; }

std::vector<Finding> diagnose_device_checks(const MachineFacts& facts) {
  if (!facts.device_checks) return {};
  if (facts.device_checks->empty())
    return {{FindingState::kNote, "device checks",
             "no GPU: nothing was checked. On GPUs that would be: the bytes and products of each; copies between each "
             "two; a model split over all; sums of ranks, one for each",
             "run it where the GPUs are; `--devices cpu` tries the checks themselves"}};
  std::vector<Finding> findings;
  for (const DeviceCheck& check : *facts.device_checks) findings.push_back(describe_check(check));
  if (std::ranges::none_of(*facts.device_checks, is_of_several))
    findings.push_back({FindingState::kNote, "device checks",
                        "one device: copies between devices and sums of ranks were not checked",
                        "run it on a machine with several, with --devices all"});
  return findings;
}

}  // namespace lancet
