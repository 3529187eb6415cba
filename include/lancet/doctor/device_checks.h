// Checks of all devices of this machine, for what a test on one GPU cannot show: devices of any index, copies between
// devices, a model that is split over devices, sums over ranks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/doctor/machine_facts.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Returns the name: "pair".
std::string_view check_name(DeviceCheckKind kind);

/// Returns the devices to check. "all": every accelerator; without any, an empty list. Otherwise devices as run.devices
/// names them, separated by commas, without budgets. Throws: ConfigError for a budget; PlacementError as find_devices()
/// does.
std::vector<at::Device> devices_to_check(const std::string& names);

/// Checks each device alone, each pair in both directions, all devices together, and a rank per accelerator if there
/// are several. A failed check does not stop the others. Takes seconds, and 30 s more if ranks do not reach each other.
std::vector<DeviceCheck> check_devices(std::span<const at::Device> devices);

}  // namespace lancet
