#include "fake_memory.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <tuple>

namespace lancet::testing {
namespace {

constexpr int kPoison = 0xFF;
/// What freed blocks may take together; beyond it the largest go back to the system.
constexpr size_t kMostFreeBytes = size_t{64} << 20, kMostFreeBlock = size_t{1} << 20;

std::array<std::atomic<int64_t>, kMaxFakeDevices> bytes_live{};
std::array<std::atomic<int64_t>, kMaxFakeDevices> bytes_peak{};
std::atomic<int64_t> memory_limit = 0;

/// Stands before a block's data.
struct alignas(64) Header {
  size_t bytes;  ///< bytes asked for
  size_t room;   ///< whole lines
  c10::DeviceIndex device;
  BlockUses uses;
};

Header* header_of(void* data) { return static_cast<Header*>(data) - 1; }

/// Blocks that were freed, and what was found wrong. Lives until the process ends, as tensors may.
struct FreeBlocks {
  std::mutex mutex;
  std::map<std::pair<int, size_t>, std::vector<void*>> by_stream_and_room;
  size_t bytes = 0;
  std::vector<std::string> problems;
};
FreeBlocks& free_blocks() {
  static auto* const blocks = new FreeBlocks;
  return *blocks;
}

/// A block's memory with its header, poisoned; nullptr: there is none.
void* take_free(int stream, size_t room) {
  FreeBlocks& blocks = free_blocks();
  const std::lock_guard lock(blocks.mutex);
  const auto at = blocks.by_stream_and_room.find({stream, room});
  if (at == blocks.by_stream_and_room.end() || at->second.empty()) return nullptr;
  void* const memory = at->second.back();
  at->second.pop_back();
  blocks.bytes -= room;
  const auto* bytes = static_cast<const unsigned char*>(memory) + sizeof(Header);
  if (room > 0 && (bytes[0] != kPoison || std::memcmp(bytes, bytes + 1, room - 1) != 0))
    blocks.problems.emplace_back("memory of a fake device was written to after it was freed");
  return memory;
}

void release(void* data) {
  if (data == nullptr) return;
  Header* const header = header_of(data);
  bytes_live[static_cast<size_t>(header->device)] -= static_cast<int64_t>(header->bytes);
  const size_t room = header->room;
  const int stream = header->uses.home();
  const std::string problem = problem_of_freeing(header->uses);
  std::memset(data, kPoison, room);
  header->~Header();
  FreeBlocks& blocks = free_blocks();
  const std::lock_guard lock(blocks.mutex);
  if (!problem.empty()) blocks.problems.push_back(problem);
  if (room > kMostFreeBlock || blocks.bytes + room > kMostFreeBytes) return std::free(header);
  blocks.by_stream_and_room[{stream, room}].push_back(header);
  blocks.bytes += room;
}

}  // namespace

c10::DataPtr FakeAllocator::allocate(size_t bytes) {
  const c10::DeviceIndex device = current_fake_device();
  const int64_t limit = memory_limit;
  const auto slot = static_cast<size_t>(device);
  TORCH_CHECK_WITH(OutOfMemoryError, limit == 0 || bytes_live[slot] + static_cast<int64_t>(bytes) <= limit,
                   "fake device ", static_cast<int>(device), ": out of memory");
  const size_t room = (bytes + sizeof(Header) - 1) / sizeof(Header) * sizeof(Header);
  const int stream = fake_stream(device);
  void* memory = take_free(stream, room);
  if (memory == nullptr) {
    memory = std::aligned_alloc(alignof(Header), sizeof(Header) + room);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(static_cast<std::byte*>(memory) + sizeof(Header), kPoison, room);
  }
  void* const data = new (memory) Header{bytes, room, device, BlockUses(stream)} + 1;
  const int64_t live = bytes_live[slot] += static_cast<int64_t>(bytes);
  for (int64_t peak = bytes_peak[slot]; live > peak && !bytes_peak[slot].compare_exchange_weak(peak, live);) {
  }
  return {data, data, &release, c10::Device(c10::DeviceType::PrivateUse1, device)};
}

c10::DeleterFnPtr FakeAllocator::raw_deleter() const { return &release; }

void FakeAllocator::copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }

FakeAllocator& fake_allocator() {
  static FakeAllocator allocator;
  return allocator;
}

c10::DeviceIndex& current_fake_device() {
  thread_local c10::DeviceIndex device = 0;
  return device;
}

c10::DeviceIndex device_of_block(void* data) { return header_of(data)->device; }
BlockUses& uses_of_block(void* data) { return header_of(data)->uses; }

int64_t fake_bytes_live(int device) { return bytes_live.at(static_cast<size_t>(device)); }

int64_t fake_bytes_peak(int device) { return bytes_peak.at(static_cast<size_t>(device)); }

void set_fake_memory_limit(int64_t bytes) { memory_limit = bytes; }

void reset_fake_peaks() {
  for (size_t device = 0; device < bytes_peak.size(); ++device) bytes_peak[device] = bytes_live[device].load();
}

std::vector<std::string> take_fake_memory_problems() {
  FreeBlocks& blocks = free_blocks();
  const std::lock_guard lock(blocks.mutex);
  return std::exchange(blocks.problems, {});
}

}  // namespace lancet::testing
