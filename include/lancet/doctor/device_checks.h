// What one GPU cannot prove, tried on the devices that are there: any index, copies between devices, a model that is
// split over them, sums over ranks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/doctor/machine_facts.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// "pair".
std::string_view check_name(DeviceCheckKind kind);

/// "all": every accelerator, none of which is an empty list; else devices as run.devices names them, separated by
/// commas, without budgets. Throws: ConfigError for a budget; PlacementError as find_devices() does.
std::vector<at::Device> devices_to_check(const std::string& names);

/// Each device by itself; each two in both directions; all together; a rank for each accelerator where there are
/// several. What fails does not stop the others. Takes seconds; 30 s more where ranks do not reach each other.
std::vector<DeviceCheck> check_devices(std::span<const at::Device> devices);

}  // namespace lancet
