// The driver's libraries are played by functions here: four GPUs, of which the process sees the last two, in reverse.
#include "lancet/runtime/gpu_driver.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

namespace lancet {
namespace {

constexpr int kPhysical[] = {3, 2};

int fake_init(unsigned) { return 0; }
int fake_init_without_gpu(unsigned) { return CUDA_ERROR_NO_DEVICE; }
int fake_version(int* version) {
  *version = 13000;
  return 0;
}
int fake_count(int* count) {
  *count = 2;
  return 0;
}
int fake_device(CUdevice* device, int index) {
  *device = kPhysical[index];
  return 0;
}
int fake_name(char* text, int size, CUdevice device) {
  return std::snprintf(text, static_cast<size_t>(size), "Fake %d", device) < 0;
}
int fake_address(char* text, int size, CUdevice device) {
  return std::snprintf(text, static_cast<size_t>(size), "0000:0%d:00.0", device) < 0;
}
int fake_uuid(CUuuid* uuid, CUdevice device) {
  std::memset(uuid->bytes, 0xA0 + device, sizeof uuid->bytes);
  return 0;
}
int fake_memory(size_t* bytes, CUdevice) {
  *bytes = 80'000'000'000;
  return 0;
}
int fake_attribute(int* value, CUdevice_attribute which, CUdevice) {
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return 0;
}
int fake_peer(int* can, CUdevice from, CUdevice) {
  *can = from == 3 ? 1 : 0;  // one way only
  return 0;
}
int fake_error_name(int, const char** name) {
  *name = "CUDA_ERROR_NO_DEVICE";
  return 0;
}
int fake_error_text(int, const char** text) {
  *text = "no CUDA-capable device is detected";
  return 0;
}
int fake_nvml_done() { return 0; }
int fake_nvml_version(char* text, unsigned) {
  std::strcpy(text, "580.65.06");
  return 0;
}
int fake_nvml_count(unsigned* count) {
  *count = 4;
  return 0;
}
/// The handle is the address of the digit that tells the GPUs apart.
int fake_nvml_by_address(const char* address, void** handle) {
  *handle = const_cast<char*>(address + 6);
  return 0;
}
int fake_nvml_index(void* handle, unsigned* index) {
  *index = static_cast<unsigned>(*static_cast<char*>(handle) - '0');
  return 0;
}

struct FakeMemory {
  unsigned long long total, free, used;
};
/// Tells the memory of whole GPUs, each of 80 GB as CUDA counts.
int fake_nvml_memory(void* handle, FakeMemory* memory) {
  const unsigned long long free = *static_cast<char*>(handle) == '3' ? 70'000'000'000 : 5'000'000'000;
  *memory = {81'600'000'000, free, 81'600'000'000 - free};
  return 0;
}
/// Tells the memory of a GPU of which the process sees a part.
int fake_nvml_larger_memory(void*, FakeMemory* memory) {
  *memory = {141'000'000'000, 130'000'000'000, 11'000'000'000};
  return 0;
}

using Library = std::map<std::string, void*>;

Library fake_cuda() {
  return {{"cuInit", reinterpret_cast<void*>(fake_init)},
          {"cuDriverGetVersion", reinterpret_cast<void*>(fake_version)},
          {"cuDeviceGetCount", reinterpret_cast<void*>(fake_count)},
          {"cuDeviceGet", reinterpret_cast<void*>(fake_device)},
          {"cuDeviceGetName", reinterpret_cast<void*>(fake_name)},
          {"cuDeviceGetPCIBusId", reinterpret_cast<void*>(fake_address)},
          {"cuDeviceGetUuid_v2", reinterpret_cast<void*>(fake_uuid)},
          {"cuDeviceTotalMem_v2", reinterpret_cast<void*>(fake_memory)},
          {"cuDeviceGetAttribute", reinterpret_cast<void*>(fake_attribute)},
          {"cuDeviceCanAccessPeer", reinterpret_cast<void*>(fake_peer)},
          {"cuGetErrorName", reinterpret_cast<void*>(fake_error_name)},
          {"cuGetErrorString", reinterpret_cast<void*>(fake_error_text)}};
}

Library fake_management() {
  return {{"nvmlInit_v2", reinterpret_cast<void*>(fake_nvml_done)},
          {"nvmlShutdown", reinterpret_cast<void*>(fake_nvml_done)},
          {"nvmlSystemGetDriverVersion", reinterpret_cast<void*>(fake_nvml_version)},
          {"nvmlDeviceGetCount_v2", reinterpret_cast<void*>(fake_nvml_count)},
          {"nvmlDeviceGetHandleByPciBusId_v2", reinterpret_cast<void*>(fake_nvml_by_address)},
          {"nvmlDeviceGetIndex", reinterpret_cast<void*>(fake_nvml_index)},
          {"nvmlDeviceGetMemoryInfo", reinterpret_cast<void*>(fake_nvml_memory)}};
}

SymbolSource source(Library library) {
  return [library = std::move(library)](const char* name) -> void* {
    const auto at = library.find(name);
    return at == library.end() ? nullptr : at->second;
  };
}

TEST(GpuDriver, TellsWhichOfTheMachinesGpusEachIs) {
  const GpuDriver driver = read_gpu_driver(source(fake_cuda()), source(fake_management()));
  EXPECT_TRUE(driver.is_there);
  EXPECT_EQ(driver.problem, "");
  EXPECT_EQ(driver.version, "580.65.06");
  EXPECT_EQ(driver.cuda_version, 13000);
  EXPECT_EQ(driver.physical_gpus, 4);
  ASSERT_EQ(driver.gpus.size(), 2U);
  EXPECT_EQ(driver.gpus[0].physical_index, 3);
  EXPECT_EQ(driver.gpus[1].physical_index, 2);
  EXPECT_EQ(driver.gpus[1].capability, 90);
  EXPECT_EQ(driver.gpus[1].total_bytes, 80'000'000'000);
  EXPECT_EQ(label(driver.gpus[0]), "cuda:0 = GPU 3, GPU-a3a3a3a3-a3a3-a3a3-a3a3-a3a3a3a3a3a3, Fake 3");
  EXPECT_EQ(numbered_name("cuda:1", driver.gpus), "cuda:1 (GPU 2)");
  EXPECT_EQ(numbered_name("cuda:2", driver.gpus), "cuda:2");
  EXPECT_EQ(driver.no_peer, (std::vector<std::pair<int64_t, int64_t>>{{0, 1}}));
}

TEST(GpuDriver, TellsWhatIsFreeOnWholeGpus) {
  Library management = fake_management();
  GpuDriver driver = read_gpu_driver(source(fake_cuda()), source(management));
  EXPECT_EQ(driver.gpus.at(0).free_bytes, 70'000'000'000);
  EXPECT_EQ(driver.gpus.at(1).free_bytes, 5'000'000'000);
  management["nvmlDeviceGetMemoryInfo"] = reinterpret_cast<void*>(fake_nvml_larger_memory);
  driver = read_gpu_driver(source(fake_cuda()), source(management));
  EXPECT_EQ(driver.gpus.at(0).free_bytes, std::nullopt) << "of a part of a GPU the library knows the whole";
  management.erase("nvmlDeviceGetMemoryInfo");
  EXPECT_EQ(read_gpu_driver(source(fake_cuda()), source(management)).gpus.at(0).free_bytes, std::nullopt);
}

TEST(GpuDriver, GivesTheDriversOwnReason) {
  Library cuda = fake_cuda();
  cuda["cuInit"] = reinterpret_cast<void*>(fake_init_without_gpu);
  const GpuDriver driver = read_gpu_driver(source(cuda), {});
  EXPECT_EQ(driver.problem, "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected");
  EXPECT_TRUE(driver.gpus.empty());
}

TEST(GpuDriver, BearsMissingFunctionsAndLibraries) {
  for (const auto& [name, function] : fake_cuda()) {
    Library cuda = fake_cuda();
    cuda.erase(name);
    EXPECT_LE(read_gpu_driver(source(cuda), source({})).gpus.size(), 2U) << name;
  }
  EXPECT_FALSE(read_gpu_driver({}, {}).is_there);
  EXPECT_EQ(read_gpu_driver({}, source(fake_management())).version, "580.65.06");
  const GpuDriver alone = read_gpu_driver(source(fake_cuda()), {});
  EXPECT_FALSE(alone.gpus.at(0).physical_index);
  EXPECT_NE(label(alone.gpus[0]).find("a GPU of unknown number"), std::string::npos);
}

TEST(GpuDriver, OfThisMachineIsThereWhenItShowsGpus) {
  const GpuDriver driver = read_gpu_driver();
  EXPECT_TRUE(driver.is_there || driver.gpus.empty());
}

}  // namespace
}  // namespace lancet
