#include <nlohmann/json.hpp>

#include "lancet/doctor/device_checks.h"
#include "lancet/doctor/doctor.h"

namespace lancet {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json gpus_json(const MachineFacts& facts) {
  Json gpus = Json::array();
  for (const GpuIdentity& gpu : facts.driver.gpus) {
    Json row = {{"index", gpu.index},
                {"physical_index", optional_json(gpu.physical_index)},
                {"uuid", gpu.uuid},
                {"pci_bus_id", gpu.pci_bus_id},
                {"name", gpu.name},
                {"total_bytes", gpu.total_bytes},
                {"capability", gpu.capability}};
    if (const auto index = static_cast<size_t>(gpu.index); index < facts.gpus.size())
      row["used_bytes"] = facts.gpus[index].used_bytes;
    gpus.push_back(std::move(row));
  }
  return gpus;
}

Json numerics_json(const MachineFacts& facts) {
  Json json(named(facts.numerics));
  if (facts.kernels) json["kernels"] = *facts.kernels;
  return json;
}

Json folders_json(const MachineFacts& facts) {
  Json folders = Json::array();
  for (const FolderFacts& folder : facts.folders)
    folders.push_back({{"role", folder.role},
                       {"path", folder.path.string()},
                       {"is_writable", folder.is_writable},
                       {"free_bytes", folder.free_bytes},
                       {"total_bytes", folder.total_bytes},
                       {"expected_bytes", folder.expected_bytes}});
  return folders;
}

Json copies_json(const MachineFacts& facts) {
  Json copies = Json::array();
  for (const CopyRate& copy : facts.copies)
    copies.push_back({{"from", copy.from}, {"to", copy.to}, {"bytes_per_s", copy.bytes_per_s}});
  return copies;
}

Json device_checks_json(const MachineFacts& facts) {
  if (!facts.device_checks) return nullptr;
  Json checks = Json::array();
  for (const DeviceCheck& check : *facts.device_checks)
    checks.push_back({{"check", check_name(check.kind)},
                      {"devices", check.devices},
                      {"failure", check.failure},
                      {"bytes_per_s", check.bytes_per_s}});
  return checks;
}

Json facts_json(const MachineFacts& facts) {
  const Versions& versions = facts.versions;
  Json memory = nullptr;
  if (facts.memory)
    memory = {{"total_bytes", facts.memory->total_bytes},
              {"available_bytes", facts.memory->available_bytes},
              {"limit_bytes", optional_json(facts.memory->limit_bytes)}};
  return {{"host", facts.host},
          {"versions",
           {{"lancet", versions.lancet},
            {"torch", versions.torch},
            {"cuda_runtime", versions.cuda_runtime},
            {"nccl", versions.nccl},
            {"gloo", versions.has_gloo}}},
          {"driver",
           {{"is_there", facts.driver.is_there},
            {"version", facts.driver.version},
            {"cuda_version", facts.driver.cuda_version},
            {"problem", facts.driver.problem}}},
          {"visible_devices", optional_json(facts.visible_devices)},
          {"gpus_on_bus", facts.gpus_on_bus},
          {"usable_gpus", facts.usable_gpus},
          {"gpus", gpus_json(facts)},
          {"no_peer_access", facts.driver.no_peer},
          {"copies", copies_json(facts)},
          {"all_reduce",
           {{"ranks", facts.all_reduce.ranks},
            {"device", facts.all_reduce.device},
            {"bytes_per_s", facts.all_reduce.bytes_per_s},
            {"failure", facts.all_reduce.failure}}},
          {"device_checks", device_checks_json(facts)},
          {"numerics", numerics_json(facts)},
          {"processor",
           {{"model", facts.cpu.model},
            {"cores", facts.cpu.cores},
            {"quota", optional_json(facts.cpu.quota)},
            {"instructions", facts.cpu.instructions},
            {"threads", facts.cpu.threads},
            {"f32_flops", facts.products.f32},
            {"bf16_flops", facts.products.bf16}}},
          {"memory", memory},
          {"folders", folders_json(facts)},
          {"limits",
           {{"open_files", optional_json(facts.limits.open_files)},
            {"locked_bytes", optional_json(facts.limits.locked_bytes)},
            {"address_bytes", optional_json(facts.limits.address_bytes)}}}};
}

}  // namespace

std::string to_json(const std::vector<Finding>& findings, const MachineFacts& facts) {
  Json rows = Json::array();
  for (const Finding& finding : findings)
    rows.push_back({{"state", state_name(finding.state)},
                    {"topic", finding.topic},
                    {"what", finding.what},
                    {"remedy", finding.remedy}});
  const Json json = {{"format", "lancet-doctor-1"},
                     {"state", state_name(overall_state(findings))},
                     {"findings", rows},
                     {"facts", facts_json(facts)}};
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lancet
