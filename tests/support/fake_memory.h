// Memory of fake devices: counted, limited, and poisoned. A block that is freed is filled with bytes of ones, which are
// NaN and -1, and goes to the next allocation of its size on its stream, as torch's allocator hands it on. New memory
// is filled so too: whoever reads what nobody wrote computes NaN.
#pragma once

#include <c10/core/Allocator.h>

#include "fake_streams.h"

namespace lancet::testing {

class FakeAllocator final : public c10::Allocator {
 public:
  /// Takes memory of the thread's current fake device and stream. Throws: torch's out-of-memory error beyond the limit.
  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;
};

FakeAllocator& fake_allocator();

/// The device that this thread's allocations go to.
c10::DeviceIndex& current_fake_device();

/// `data`: where an allocation begins.
c10::DeviceIndex device_of_block(void* data);
BlockUses& uses_of_block(void* data);

}  // namespace lancet::testing
