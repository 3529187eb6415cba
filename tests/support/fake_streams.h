// Streams and events of fake devices. Work is done when it is launched, but what may be assumed of it is what a GPU
// promises: a stream's work comes one after the other; other streams' work, and the host, come after it only where an
// event, a wait or a read says so. Each stream and the host has a clock of what comes before it.
#pragma once

#include <c10/core/Stream.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fake_device.h"

namespace lancet::testing {

inline constexpr int kFakeStreamsADevice = 16;
inline constexpr int kFakeStreams = kMaxFakeDevices * kFakeStreamsADevice;

/// How much of each stream's work is known to be done.
using WorkClock = std::array<int64_t, kFakeStreams>;

/// Who used a block of memory, and when, by streams' clocks. Guarded by the functions below.
class BlockUses {
 public:
  explicit BlockUses(int home) : home_(home) {}

  int home() const { return home_; }  ///< the stream whose work gets the memory next
  /// Keeps the memory until what `stream` has been given is done.
  void record(int stream);

 private:
  friend void use_block(BlockUses& uses, int stream, bool is_written);
  friend std::string problem_of_freeing(const BlockUses& uses);

  int home_;
  int written_on_ = -1;
  int64_t written_at_ = 0;
  std::vector<std::pair<int, int64_t>> last_uses_;  // by stream
  std::vector<int> recorded_;
};

/// This thread's stream on the device, as a number among all.
int fake_stream(c10::DeviceIndex device);
int number_of(const c10::Stream& stream);
c10::Stream stream_of(int number);
/// Sets this thread's stream on its device. Returns the one before.
c10::Stream exchange_fake_stream(const c10::Stream& stream);
/// A stream beside the usual one; there are kFakeStreamsADevice, which come again and again.
c10::Stream side_fake_stream(c10::DeviceIndex device);

/// Begins a piece of work, after all that the host knows to be done.
void launch_on(int stream);
/// Notes that the stream's last launch uses the block. Throws: c10::Error where that need not come after the write that
/// it reads, or after the uses that it writes over.
void use_block(BlockUses& uses, int stream, bool is_written);
/// Empty, or what is wrong with handing the block to its home stream's next work now.
std::string problem_of_freeing(const BlockUses& uses);

WorkClock clock_of(int stream);
/// What `stream` is given from now on comes after all that the clock knows.
void wait_for(int stream, const WorkClock& clock);
void host_waits_for(const WorkClock& clock);

}  // namespace lancet::testing
