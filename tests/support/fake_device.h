// N devices without a GPU, for tests: torch's PrivateUse1 backend over CPU memory. An operation that mixes devices
// throws what CUDA throws; one whose result a GPU would give in any order throws too (sum_order.h); bytes and copies
// are counted. Results are the CPU's, bit by bit. A device is at::Device(at::kPrivateUse1, index). Link the object file
// itself (it registers itself), and never use it where real CUDA is in use.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

namespace lancet::testing {

/// Most fake devices that there can be; set_fake_device_count makes fewer of them usable.
inline constexpr int kMaxFakeDevices = 8;

/// Tensors cannot be made on a device from `count` on. At the start there are kMaxFakeDevices.
void set_fake_device_count(int count);
/// Sets the count likewise, and returns the devices.
std::vector<c10::Device> fake_devices(int count);

/// Bytes of all tensors on `device`.
int64_t fake_bytes_live(int device);
/// The most there were at once since the last reset.
int64_t fake_bytes_peak(int device);
/// Peaks of all devices go down to what is live.
void reset_fake_peaks();

/// An allocation that would take a device beyond `bytes` throws torch's out-of-memory error. 0: no limit.
void set_fake_memory_limit(int64_t bytes);

/// Copies from one device to another, the CPU included.
int64_t fake_copies_across();
void reset_fake_copies();

/// How often somebody waited until a whole device was done.
int64_t fake_synchronisations();

/// What all devices together were asked to do.
struct FakeWork {
  int64_t operations = 0;         ///< kernels, as a GPU would launch them; views are none
  int64_t uploads = 0;            ///< copies from the host
  int64_t uploads_under_way = 0;  ///< uploads among these that nobody waits for
  int64_t reads = 0;              ///< copies to the host, scalars too: each waits for the device

  friend FakeWork operator-(const FakeWork& a, const FakeWork& b) {
    return {a.operations - b.operations, a.uploads - b.uploads, a.uploads_under_way - b.uploads_under_way,
            a.reads - b.reads};
  }
};
FakeWork fake_work();

}  // namespace lancet::testing
