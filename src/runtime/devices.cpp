#include "lancet/runtime/devices.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/empty.h>
#include <torch/types.h>
#include <algorithm>
#include <chrono>
#include <numeric>
#include <regex>
#include <utility>

#include "device_text.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/runtime/gpu_driver.h"
#include "lancet/runtime/memory.h"

namespace lancet {
namespace {

constexpr const char* kExpected =
    "expected auto, or a list of cpu and cuda:N, each with a budget if wanted: cuda:0=20GiB";

int64_t gpu_count() { return at::hasCUDA() ? static_cast<int64_t>(at::detail::getCUDAHooks().deviceCount()) : 0; }

/// Counts accelerators other than GPUs that have registered themselves with torch.
int64_t other_count() {
  return at::isPrivateUse1HooksRegistered() ? static_cast<int64_t>(at::detail::getPrivateUse1Hooks().deviceCount()) : 0;
}

at::Device parse_device(const std::string& name, int64_t gpus) {
  if (name == "cpu") return at::kCPU;
  std::smatch match;
  const std::string other = other_count() > 0 ? c10::get_privateuse1_backend() : "cuda";
  if (!std::regex_match(name, match, std::regex("(cuda|" + other + "):([0-9]{1,2})")))
    throw PlacementError(cat("run.devices: '", name, "': ", kExpected));
  const int64_t index = std::stoll(match[2]);
  const int64_t count = match[1] == "cuda" ? gpus : other_count();
  if (index >= count)
    throw PlacementError(cat("run.devices: '", name, "': this machine shows ", count,
                             match[1] == "cuda" ? " GPU(s)" : " of them", ". Use cpu or auto"));
  return {match[1] == "cuda" ? at::kCUDA : at::kPrivateUse1, static_cast<at::DeviceIndex>(index)};
}

/// Returns a GPU's free memory without asking CUDA, which would create a context there: hundreds of megabytes on a GPU
/// that the model may not need.
std::optional<int64_t> free_without_context(at::Device device, const GpuDriver& driver) {
  constexpr int64_t kContextBytes = 600'000'000;
  if (!device.is_cuda() || at::detail::getCUDAHooks().hasPrimaryContext(device.index())) return std::nullopt;
  for (const GpuIdentity& gpu : driver.gpus)
    if (gpu.index == device.index() && gpu.free_bytes) return std::max<int64_t>(0, *gpu.free_bytes - kContextBytes);
  return std::nullopt;
}

DeviceSource this_machine() {
  DeviceSource source{gpu_count(), free_bytes};
  if (source.gpus > 0)
    source.free_bytes = [driver = read_gpu_driver()](at::Device device) {
      const std::optional<int64_t> free = free_without_context(device, driver);
      return free ? free : free_bytes(device);
    };
  return source;
}

/// A device that was named, or found.
struct AskedDevice {
  std::string name;  ///< "cuda:0=20GiB"
  at::Device device;
  std::optional<int64_t> bytes;
};

AskedDevice parse_entry(const std::string& entry, int64_t gpus) {
  const size_t equals = entry.find('=');
  AskedDevice asked{entry, parse_device(entry.substr(0, equals), gpus), {}};
  if (equals == std::string::npos) return asked;
  asked.bytes = parse_bytes(std::string_view(entry).substr(equals + 1));
  if (!asked.bytes)
    throw PlacementError(cat("run.devices: '", entry, "': expected a budget such as 20GiB or 500MB after the ="));
  return asked;
}

std::vector<AskedDevice> all_devices(int64_t gpus) {
  if (gpus == 0) return {{"cpu", at::kCPU, {}}};
  std::vector<AskedDevice> devices;
  for (int64_t index = 0; index < gpus; ++index)
    devices.push_back({"auto", at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index)), {}});
  return devices;
}

std::vector<AskedDevice> named_devices(std::span<const std::string> names, int64_t gpus) {
  std::vector<AskedDevice> devices;
  for (const std::string& name : names) {
    AskedDevice asked = parse_entry(name, gpus);
    for (const AskedDevice& earlier : devices)
      if (earlier.device == asked.device)
        throw PlacementError(cat("run.devices: ", asked.device.str(), " stands twice: name each device once"));
    devices.push_back(std::move(asked));
  }
  return devices;
}

/// Returns how much of a device a process may use, if `users` ranks of its host share the device.
int64_t budget_of(const AskedDevice& asked, int64_t users, const DeviceSource& source) {
  const std::optional<int64_t> free = source.free_bytes(asked.device);
  const int64_t usable = !free ? DeviceBudget::kUnknown : asked.device.is_cuda() ? *free / 20 * 19 : *free;
  if (asked.bytes && *asked.bytes > usable)
    throw PlacementError(cat("run.devices: '", asked.name, "': only ", binary_bytes_text(static_cast<uint64_t>(usable)),
                             " are free there. Leave the budget out to use what is free, or end what uses the rest"));
  const int64_t bytes = asked.bytes.value_or(usable);
  return bytes == DeviceBudget::kUnknown ? bytes : bytes / users;
}

/// Returns the seconds of one product of square matrices.
double product_seconds(at::Device device, at::ScalarType dtype, int64_t size) {
  const torch::NoGradGuard no_grad;
  const Tensor a = torch::full({size, size}, 0.5, torch::TensorOptions(dtype).device(device));
  const auto seconds_of = [&](int products) {
    const auto begin = std::chrono::steady_clock::now();
    Tensor product;
    for (int i = 0; i < products; ++i) product = torch::matmul(a, a);
    product[0][0].item();  // waits for the device
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / products;
  };
  seconds_of(1);  // the first product includes the start of the device
  return std::min(seconds_of(2), seconds_of(2));
}

/// Measures products that are large enough for a stable time, on any device.
double products_per_second(at::Device device, at::ScalarType dtype) {
  constexpr double kLongEnough = 0.005;
  constexpr int64_t kLargest = 8192;
  for (int64_t size = 256;; size *= 2) {
    const double seconds = product_seconds(device, dtype, size);
    const auto n = static_cast<double>(size);
    if (seconds >= kLongEnough || size == kLargest) return n * n * n / seconds;
  }
}

}  // namespace

bool DeviceBudget::is_host() const { return device.is_cpu(); }

Placement even_placement(int64_t n_layers, const DeviceChoice& choice, at::ScalarType weight_dtype) {
  std::vector<at::Device> devices;
  for (const DeviceBudget& budget : choice.devices) devices.push_back(budget.device);
  if (choice.first_if_enough) devices.resize(1, devices.front());
  return plan_placement(n_layers, devices, weight_dtype);
}

bool fuses_attention(at::Device device, at::ScalarType dtype) {
  return device.is_cpu() || (device.is_cuda() && dtype != at::kDouble);
}

bool has_sixteen_bit_products(at::Device device) { return device.is_cuda(); }

int64_t compute_capability(at::Device device) {
  if (!device.is_cuda()) return 0;
  static const GpuDriver driver = read_gpu_driver();
  const auto at = std::ranges::find(driver.gpus, static_cast<int64_t>(device.index()), &GpuIdentity::index);
  return at == driver.gpus.end() ? 0 : at->capability;
}

DeviceChoice find_devices(std::span<const std::string> names, HostShare share) {
  return find_devices(names, share, this_machine());
}

DeviceChoice find_devices(std::span<const std::string> names, HostShare share, const DeviceSource& source) {
  if (names.empty()) throw PlacementError(cat("run.devices: empty list: ", kExpected));
  const bool is_any = names.size() == 1 && names[0] == "auto";
  const std::vector<AskedDevice> all = is_any ? all_devices(source.gpus) : named_devices(names, source.gpus);
  const int64_t n = std::ranges::count_if(all, [](const AskedDevice& asked) { return !asked.device.is_cpu(); });
  const auto first_of = [&](int64_t rank) { return rank * n / share.size; };
  const auto end_of = [&](int64_t rank) { return std::max(first_of(rank) + 1, first_of(rank + 1)); };
  DeviceChoice part{{}, /*first_if_enough=*/is_any && n > 0};
  int64_t index = 0;  // index among the accelerators
  for (const AskedDevice& asked : all) {
    int64_t users = share.size;
    if (!asked.device.is_cpu()) {
      users = 0;
      for (int64_t rank = 0; rank < share.size; ++rank) users += first_of(rank) <= index && index < end_of(rank);
      const bool is_mine = first_of(share.rank) <= index && index < end_of(share.rank);
      ++index;
      if (!is_mine) continue;
    }
    part.devices.push_back({asked.device, budget_of(asked, users, source)});
  }
  if (std::ranges::none_of(part.devices, &DeviceBudget::is_host))
    part.host_bytes = budget_of({"cpu", Placement::host(), {}}, share.size, source);
  return part;
}

DeviceChoice assume_devices(const std::string& text) {
  DeviceChoice choice;
  int64_t gpus = 0;
  for (const std::string& entry : split(text, ',')) {
    std::smatch match;
    const bool is_host = entry.starts_with("cpu=");
    const bool is_many = std::regex_match(entry, match, std::regex("([1-9][0-9]{0,2})x(.*)"));
    const std::optional<int64_t> bytes = parse_bytes(is_host ? entry.substr(4) : is_many ? match[2].str() : entry);
    const int64_t count = is_many ? std::stoll(match[1]) : 1;
    if (!bytes || gpus + count > std::numeric_limits<at::DeviceIndex>::max())
      throw ConfigError(cat("--devices: '", entry, "': expected memory per GPU and, if wanted, of the CPU: 8x80GiB, ",
                            "80GiB,cpu=256GiB, or 24GiB,80GiB"));
    for (int64_t i = 0; i < count; ++i)
      choice.devices.push_back(
          {is_host ? at::Device(at::kCPU) : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(gpus++)), *bytes});
  }
  return choice;
}

void measure_speeds(std::vector<DeviceBudget>& devices, at::ScalarType dtype) {
  for (DeviceBudget& budget : devices)
    if (!budget.is_host()) budget.speed = products_per_second(budget.device, dtype);
  equalize_speeds(devices);
}

void equalize_speeds(std::vector<DeviceBudget>& devices) {
  std::vector<DeviceBudget*> order;
  for (DeviceBudget& budget : devices)
    if (!budget.is_host()) order.push_back(&budget);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->speed > b->speed; });
  const double fastest = order.empty() ? 1.0 : order.front()->speed;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    double sum = 0;
    const double first = order[begin]->speed;
    while (end < order.size() && order[end]->speed * 1.25 >= first) sum += order[end++]->speed;
    const double mean = sum / static_cast<double>(end - begin) / fastest;
    for (; begin < end; ++begin) order[begin]->speed = mean;
  }
}

std::string device_text(at::Device device) {
  if (device == Placement::host()) return device.str();
  static const GpuDriver kDriver = read_gpu_driver();
  return numbered_name(device.str(), kDriver.gpus);
}

Placement::Placement(const std::vector<at::Device>& layer_devices, at::ScalarType weight_dtype)
    : weight_dtype_(weight_dtype) {
  if (layer_devices.empty()) throw PlacementError("placement: a model needs at least one layer");
  for (const at::Device device : layer_devices) {
    const auto layer = static_cast<int64_t>(stage_of_layer_.size());
    if (stages_.empty() || stages_.back().device != device) stages_.push_back({device, layer, layer});
    ++stages_.back().end;
    stage_of_layer_.push_back(static_cast<int64_t>(stages_.size()) - 1);
  }
  batches_under_way_ = static_cast<int64_t>(stages_.size());
}

Placement::Placement(std::vector<Stage> stages, at::ScalarType weight_dtype)
    : stages_(std::move(stages)), weight_dtype_(weight_dtype) {
  for (const Stage& stage : stages_) {
    if (stage.begin != std::ssize(stage_of_layer_) || stage.layers() < 1)
      throw PlacementError(cat("placement: a stage of layers ", stage.begin, "-", stage.end - 1,
                               ": expected layers from ", stage_of_layer_.size(), " on"));
    stage_of_layer_.insert(stage_of_layer_.end(), static_cast<size_t>(stage.layers()), &stage - stages_.data());
  }
  if (stages_.empty()) throw PlacementError("placement: a model needs at least one layer");
  batches_under_way_ = static_cast<int64_t>(stages_.size());
}

bool Placement::is_whole() const { return std::ranges::all_of(stages_, &Stage::is_here); }

std::optional<at::Device> Placement::last_device_here() const {
  const auto last = std::find_if(stages_.rbegin(), stages_.rend(), [](const Stage& stage) { return stage.is_here(); });
  return last == stages_.rend() ? std::nullopt : std::optional(last->device);
}

void Placement::put_elsewhere_on(at::Device device) {
  for (Stage& stage : stages_)
    if (!stage.is_here()) stage.device = device;
}

at::ScalarType Placement::value_dtype() const { return weight_dtype_ == at::kDouble ? at::kDouble : at::kFloat; }

bool Placement::is_host_only() const {
  return std::all_of(stages_.begin(), stages_.end(), [](const Stage& stage) { return stage.device == host(); });
}

std::optional<int64_t> Placement::room_bytes(at::Device device) const {
  const auto at = std::find_if(room_.begin(), room_.end(), [&](const auto& entry) { return entry.first == device; });
  return at == room_.end() ? std::nullopt : std::optional(at->second);
}

at::Device Placement::host() { return at::kCPU; }

Tensor Placement::staging_buffer(int64_t bytes, at::Device target) {
  return at::empty({bytes}, at::TensorOptions(at::kByte).device(host()).pinned_memory(target.is_cuda()));
}

at::Device Placement::named(const std::string& name) { return at::Device(name); }

at::Device Placement::like(at::Device device, int64_t index) {
  return {device.type(), static_cast<at::DeviceIndex>(index)};
}

std::string Placement::description() const {
  const std::string solves = solve_on_ == SolveOn::kHost && !is_host_only() ? "; solves on cpu" : "";
  if (stages_.size() == 1 && is_whole()) return device_text(stages_.front().device) + solves;
  std::vector<std::string> parts;
  for (const Stage& stage : stages_)
    parts.push_back(cat(stage.is_here() ? device_text(stage.device) : cat("rank ", stage.rank), ": layers ",
                        stage.begin, "-", stage.end - 1));
  return join(parts) + solves;
}

Placement plan_placement(int64_t n_layers, std::span<const at::Device> devices, at::ScalarType weight_dtype) {
  const int64_t n_devices = static_cast<int64_t>(devices.size());
  if (n_devices == 0 || n_devices > n_layers)
    throw PlacementError(cat("placement: ", n_layers, " layers cannot be split over ", n_devices, " devices"));
  std::vector<at::Device> layer_devices;
  for (int64_t layer = 0; layer < n_layers; ++layer)
    layer_devices.push_back(devices[static_cast<size_t>(layer * n_devices / n_layers)]);
  return {layer_devices, weight_dtype};
}

void check_device(const Tensor& tensor, at::Device expected, const std::string& what) {
  if (tensor.device() != expected)
    throw PlacementError(
        cat(what, ": expected on ", device_text(expected), ", found on ", device_text(tensor.device())));
}

}  // namespace lancet
