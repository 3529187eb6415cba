#include "fake_streams.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <mutex>

namespace lancet::testing {
namespace {

std::mutex mutex;
std::array<WorkClock, kFakeStreams> clocks{};  // of each stream: what comes before its next work
WorkClock host{};                              // of all threads together: how they wait for each other is not seen
std::array<std::atomic<int>, kMaxFakeDevices> side_streams{};
thread_local std::array<int, kMaxFakeDevices> current{};

void learn(WorkClock& clock, const WorkClock& other) {
  for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

WorkClock& own(int stream) { return clocks[static_cast<size_t>(stream)]; }
int64_t& done(WorkClock& clock, int stream) { return clock[static_cast<size_t>(stream)]; }

std::string name_of(int stream) {
  return "stream " + std::to_string(stream % kFakeStreamsADevice) +
         " of fake:" + std::to_string(stream / kFakeStreamsADevice);
}

}  // namespace

int fake_stream(c10::DeviceIndex device) { return device * kFakeStreamsADevice + current[static_cast<size_t>(device)]; }

int number_of(const c10::Stream& stream) {
  return stream.device_index() * kFakeStreamsADevice + static_cast<int>(stream.id());
}

c10::Stream stream_of(int number) {
  const auto device = static_cast<c10::DeviceIndex>(number / kFakeStreamsADevice);
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::PrivateUse1, device),
                     number % kFakeStreamsADevice);
}

c10::Stream exchange_fake_stream(const c10::Stream& stream) {
  const c10::Stream before = stream_of(fake_stream(stream.device_index()));
  current[static_cast<size_t>(stream.device_index())] = static_cast<int>(stream.id());
  return before;
}

c10::Stream side_fake_stream(c10::DeviceIndex device) {
  const int n = side_streams[static_cast<size_t>(device)]++ % (kFakeStreamsADevice - 1);
  return stream_of(device * kFakeStreamsADevice + 1 + n);
}

void BlockUses::record(int stream) {
  const std::lock_guard lock(mutex);
  recorded_.push_back(stream);
}

void launch_on(int stream) {
  const std::lock_guard lock(mutex);
  learn(own(stream), host);
  ++done(own(stream), stream);
}

void use_block(BlockUses& uses, int stream, bool is_written) {
  const std::lock_guard lock(mutex);
  WorkClock& clock = own(stream);
  TORCH_CHECK(uses.written_on_ < 0 || done(clock, uses.written_on_) >= uses.written_at_, name_of(stream),
              " takes memory that ", name_of(uses.written_on_), " may not have written yet: expected a wait for it");
  bool is_known = false;
  for (auto& [other, at] : uses.last_uses_) {
    TORCH_CHECK(!is_written || done(clock, other) >= at, name_of(stream), " writes to memory that ", name_of(other),
                " may still use: expected a wait for it");
    if (other != stream) continue;
    at = done(clock, stream);
    is_known = true;
  }
  if (!is_known) uses.last_uses_.emplace_back(stream, done(clock, stream));
  if (!is_written) return;
  uses.written_on_ = stream;
  uses.written_at_ = done(clock, stream);
}

std::string problem_of_freeing(const BlockUses& uses) {
  const std::lock_guard lock(mutex);
  WorkClock before = own(uses.home_);
  learn(before, host);
  for (const auto& [stream, at] : uses.last_uses_)
    if (done(before, stream) < at && std::ranges::find(uses.recorded_, stream) == uses.recorded_.end())
      return name_of(uses.home_) + " gets memory back that " + name_of(stream) +
             " may still use: expected record_stream, or a wait";
  return "";
}

WorkClock clock_of(int stream) {
  const std::lock_guard lock(mutex);
  return own(stream);
}

void wait_for(int stream, const WorkClock& clock) {
  const std::lock_guard lock(mutex);
  learn(own(stream), clock);
}

void host_waits_for(const WorkClock& clock) {
  const std::lock_guard lock(mutex);
  learn(host, clock);
}

}  // namespace lancet::testing
