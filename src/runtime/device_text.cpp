#include "device_text.h"

#include "lancet/runtime/gpu_driver.h"
#include "lancet/runtime/placement.h"

namespace lancet {

std::string device_text(at::Device device) {
  if (device == Placement::host()) return device.str();
  static const GpuDriver kDriver = read_gpu_driver();
  return numbered_name(device.str(), kDriver.gpus);
}

}  // namespace lancet
