// How it works: an operation on fake tensors finds no kernel and lands in `run_on_cpu`, which checks the devices of its
// tensor arguments, gives the CPU kernel aliases of the same memory, and puts the results into memory of the fake
// device. Only what makes or reshapes storage has kernels of its own here. Source of the idea: torch's own
// test/cpp_extensions/open_registration_extension.
#include "fake_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fake_fault.h"
#include "fake_memory.h"
#include "sum_order.h"

namespace lancet::testing {
namespace {

constexpr c10::DeviceType kFake = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKeySet kFakeKeys(c10::DispatchKey::PrivateUse1);

std::atomic<int> device_count{kMaxFakeDevices};
std::atomic<int64_t> copies_across{0};
std::atomic<int64_t> synchronisations{0}, operations{0}, uploads{0}, uploaded_bytes{0}, uploads_under_way{0}, reads{0};

bool is_fake(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kFake; }

/// Notes that the stream's last launch uses the tensor's memory.
void use(const at::Tensor& tensor, int stream, bool is_written) {
  if (!is_fake(tensor) || !tensor.has_storage()) return;
  if (void* const data = tensor.storage().data_ptr().get(); data != nullptr)
    use_block(uses_of_block(data), stream, is_written);
}

/// Waits for all that the stream has been given.
void host_waits_for_stream(int stream) { host_waits_for(clock_of(stream)); }

struct FakeGuard final : c10::impl::DeviceGuardImplInterface {
  FakeGuard() = default;
  explicit FakeGuard(c10::DeviceType /*type*/) {}
  c10::DeviceType type() const override { return kFake; }
  c10::Device getDevice() const override { return {kFake, current_fake_device()}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() < device_count, "fake device ", static_cast<int>(device.index()), " of ",
                device_count.load());
    uncheckedSetDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) current_fake_device() = device.index();
  }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return stream_of(fake_stream(device.index() < 0 ? current_fake_device() : device.index()));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT,
                       c10::Device(kFake, device.index() < 0 ? current_fake_device() : device.index()));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*is_high_priority*/) const override {
    return side_fake_stream(device.index());
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return exchange_fake_stream(stream); }
  /// Autograd starts one thread per device, once: raising the count later must not need more of them.
  c10::DeviceIndex deviceCount() const noexcept override { return kMaxFakeDevices; }
  void destroyEvent(void* event, c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<WorkClock*>(event);
  }
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new WorkClock;
    *static_cast<WorkClock*>(*event) = clock_of(number_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) wait_for(number_of(stream), *static_cast<WorkClock*>(event));
  }
  bool queryEvent(void* event) const override {
    synchronizeEvent(event);
    return true;
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) host_waits_for(*static_cast<WorkClock*>(event));
  }
  bool queryStream(const c10::Stream& stream) const override {
    host_waits_for_stream(number_of(stream));
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override { host_waits_for_stream(number_of(stream)); }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    ++synchronisations;
    for (int i = 0; i < kFakeStreamsADevice; ++i) host_waits_for_stream(device * kFakeStreamsADevice + i);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    if (data.get() != nullptr) uses_of_block(data.get()).record(number_of(stream));
  }
};

/// What generic code asks about the backend. Random numbers come from the CPU's generators.
struct FakeHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kMaxFakeDevices; }
  c10::DeviceIndex getCurrentDevice() const override { return current_fake_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { current_fake_device() = device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return std::exchange(current_fake_device(), device);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? current_fake_device() : exchangeDevice(device);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex /*device*/) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex /*device*/) const override { return at::detail::createCPUGenerator(); }
  at::Device getDeviceFromPtr(void* data) const override { return {kFake, device_of_block(data)}; }
  bool isPinnedPtr(const void* /*data*/) const override { return false; }
};

FakeHooks fake_hooks;

/// A CPU tensor over the same memory, which it keeps alive.
at::Tensor cpu_alias(const at::Tensor& tensor) {
  if (!is_fake(tensor)) return tensor;
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  return at::from_blob(
      tensor.data_ptr(), tensor.sizes(), tensor.strides(), [keep_alive = tensor](void*) {},
      tensor.options().device(at::kCPU), at::kCPU);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                         std::optional<bool> /*pin_memory*/) {
  const c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_strided_generic(sizes, strides, &fake_allocator(), kFakeKeys, c10::dtype_or_default(dtype));
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                 std::optional<at::Device> device, std::optional<bool> /*pin_memory*/,
                 std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(c10::device_or_default(device));
  return at::detail::empty_generic(sizes, &fake_allocator(), kFakeKeys, c10::dtype_or_default(dtype), format);
}

/// Grows on the tensor's own device.
const at::Tensor& resize_here(const at::Tensor& self, at::IntArrayRef sizes, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(self.device());
  return at::native::resize_(self, sizes, format);
}

/// A copy between devices runs on the source's stream, and each side's waits for the other's.
void order_copy(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const int stream = fake_stream((is_fake(from) ? from : to).device().index());
  const bool is_across = is_fake(from) && is_fake(to) && from.device() != to.device();
  if (is_across) wait_for(stream, clock_of(fake_stream(to.device().index())));
  launch_on(stream);
  use(from, stream, /*is_written=*/false);
  use(to, stream, /*is_written=*/true);
  if (is_across) wait_for(fake_stream(to.device().index()), clock_of(stream));
  if ((from.is_cpu() || to.is_cpu()) && !non_blocking) host_waits_for_stream(stream);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  if (self.device() != to.device()) ++copies_across;
  if (self.is_cpu() && !to.is_cpu()) {
    ++uploads;
    uploaded_bytes += static_cast<int64_t>(self.nbytes());
    if (non_blocking) ++uploads_under_way;
  } else if (to.is_cpu()) {
    ++reads;
  } else {
    ++operations;
  }
  order_copy(self, to, non_blocking);
  at::Tensor arrived = cpu_alias(to);
  arrived.copy_(cpu_alias(self), non_blocking);
  spoil_copy(self.device(), to.device(), arrived);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  if (self.sizes() != to.sizes()) resize_here(to, self.sizes(), std::nullopt);
  return copy_from(self, to, false);
}

/// One operation on its way through the CPU kernel. The stack holds its arguments, then its results.
class CpuCall {
 public:
  CpuCall(const c10::OperatorHandle& op, torch::jit::Stack& stack) : op_(op), stack_(stack) {}

  void run() {
    const size_t n_arguments = op_.schema().arguments().size();
    check_devices();
    if (device_) launch_on(fake_stream(device_->index()));
    for (size_t i = 0; i < n_arguments; ++i) lower(i);
    check_sum_order(op_.schema().operator_name().name, {&argument(0), n_arguments});
    TORCH_CHECK(device_.has_value(), op_.schema().operator_name(), ": neither a tensor nor a device argument");
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    if (op_.schema().operator_name().name == "aten::mm") spoil_product(*device_, result(0).toTensor());
    store_resized_outputs();
    for (size_t i = 0; i < op_.schema().returns().size(); ++i) raise(i);
  }

 private:
  /// CUDA's indexing takes indices from the CPU.
  bool takes_cpu_indices() const {
    static const std::set<std::string> kNames{"aten::index", "aten::index_put_", "aten::_index_put_impl_",
                                              "aten::_unsafe_index"};
    return kNames.contains(op_.schema().operator_name().name);
  }

  c10::IValue& argument(size_t i) { return stack_[stack_.size() - op_.schema().arguments().size() + i]; }
  c10::IValue& result(size_t i) { return stack_[stack_.size() - op_.schema().returns().size() + i]; }

  void check_devices() {
    for (size_t i = 0; i < op_.schema().arguments().size(); ++i) {
      const c10::IValue& value = argument(i);
      if (value.isTensor()) check_device(value.toTensor(), i);
      if (value.isTensorList())
        for (const at::Tensor& tensor : value.toTensorVector()) check_device(tensor, i);
      if (value.isOptionalTensorList())
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
          check_device(tensor.value_or(at::Tensor()), i);
    }
  }

  void check_device(const at::Tensor& tensor, size_t i) {
    if (!tensor.defined()) return;
    // Numbers from the CPU mix with everything, as on CUDA.
    if (tensor.is_cpu() && (tensor.dim() == 0 || takes_cpu_indices())) return;
    if (!device_) device_ = tensor.device();
    TORCH_CHECK(*device_ == tensor.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ", *device_, " and ",
                tensor.device(), "! (when checking argument for argument ", op_.schema().arguments()[i].name(),
                " in method ", op_.schema().operator_name(), ")");
  }

  /// Puts what the CPU kernel takes in the place of argument `i`.
  void lower(size_t i) {
    c10::IValue& value = argument(i);
    const c10::AliasInfo* alias = op_.schema().arguments()[i].alias_info();
    const bool is_written = alias != nullptr && alias->isWrite();
    if (value.isTensor()) {
      value = lowered(value.toTensor(), is_written);
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(lowered(tensor, is_written));
      value = c10::List<at::Tensor>(tensors);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        tensors.push_back(tensor ? std::optional(lowered(*tensor, is_written)) : std::nullopt);
      value = tensors;
    } else if (value.isDevice()) {
      device_ = value.toDevice();
      value = c10::IValue(c10::Device(at::kCPU));
    }
  }

  at::Tensor lowered(const at::Tensor& tensor, bool is_written) {
    if (!is_fake(tensor)) return tensor;
    use(tensor, fake_stream(tensor.device().index()), is_written);
    // An empty out= is resized by the kernel, which an alias cannot be.
    const bool is_output = is_written && tensor.numel() == 0;
    lowered_.push_back(
        {tensor, is_output ? at::empty(tensor.sizes(), tensor.options().device(at::kCPU)) : cpu_alias(tensor)});
    return lowered_.back().cpu;
  }

  void store_resized_outputs() {
    for (const Lowered& each : lowered_) {
      if (each.cpu.sizes() == each.fake.sizes()) continue;
      resize_here(each.fake, each.cpu.sizes(), std::nullopt);
      cpu_alias(each.fake).copy_(each.cpu);
    }
  }

  /// Puts result `i` onto the fake device.
  void raise(size_t i) {
    c10::IValue& value = result(i);
    if (value.isTensor()) {
      value = raised(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(raised(tensor));
      value = c10::List<at::Tensor>(tensors);
    }
  }

  /// In-place operations and out= return an argument; everything else gets memory that the device accounts for.
  at::Tensor raised(const at::Tensor& tensor) const {
    if (!tensor.defined() || !tensor.is_cpu()) return tensor;
    for (const Lowered& each : lowered_)
      if (tensor.is_same(each.cpu)) return each.fake;
    at::Tensor out = empty_strided(tensor.sizes(), tensor.strides(), tensor.scalar_type(), {}, device_, {});
    use(out, fake_stream(out.device().index()), /*is_written=*/true);
    if (tensor.is_non_overlapping_and_dense() && tensor.nbytes() > 0)
      std::memcpy(out.mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());  // copy_ takes far longer
    else
      cpu_alias(out).copy_(tensor);
    return out;
  }

  struct Lowered {
    at::Tensor fake;
    at::Tensor cpu;
  };

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  std::optional<c10::Device> device_;
  std::vector<Lowered> lowered_;
};

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ++operations;
  CpuCall(op, *stack).run();
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, FakeGuard);
REGISTER_ALLOCATOR(kFake, &fake_allocator());

[[maybe_unused]] const bool is_registered = [] {
  c10::register_privateuse1_backend("fake");
  at::RegisterPrivateUse1HooksInterface(&fake_hooks);
  return true;
}();

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("resize_", &resize_here);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_local_scalar_dense", [](const at::Tensor& self) {
    ++reads;
    const int stream = fake_stream(self.device().index());
    launch_on(stream);
    use(self, stream, /*is_written=*/false);
    host_waits_for_stream(stream);
    return cpu_alias(self).item();
  });
  library.impl("record_stream", [](at::Tensor& self, c10::Stream stream) {
    uses_of_block(self.storage().data_ptr().get()).record(number_of(stream));
  });
  library.impl("as_strided",
               [](const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                  std::optional<int64_t> offset) { return at::cpu::as_strided(self, sizes, strides, offset); });
  library.impl("view", [](const at::Tensor& self, at::IntArrayRef sizes) { return at::native::view(self, sizes); });
  library.impl("_reshape_alias", [](const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides) {
    return at::native::_reshape_alias(self, sizes, strides);
  });
  library.impl("set_.source_Storage_storage_offset",
               [](at::Tensor& self, at::Storage storage, int64_t offset, at::IntArrayRef sizes, at::IntArrayRef strides)
                   -> at::Tensor& { return at::cpu::set_(self, std::move(storage), offset, sizes, strides); });
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, library) { library.fallback(torch::CppFunction::makeFallthrough()); }

}  // namespace

void set_fake_device_count(int count) {
  TORCH_CHECK(count >= 1 && count <= kMaxFakeDevices, "fake devices: ", count, ", expected 1 to ", kMaxFakeDevices);
  device_count = count;
}

std::vector<c10::Device> fake_devices(int count) {
  set_fake_device_count(count);
  std::vector<c10::Device> devices;
  for (int i = 0; i < count; ++i) devices.emplace_back(kFake, static_cast<c10::DeviceIndex>(i));
  return devices;
}

int64_t fake_copies_across() { return copies_across; }
int64_t fake_synchronisations() { return synchronisations; }
FakeWork fake_work() { return {operations, uploads, uploaded_bytes, uploads_under_way, reads}; }
void reset_fake_copies() { copies_across = 0; }

}  // namespace lancet::testing
