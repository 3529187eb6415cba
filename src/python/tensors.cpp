#include "tensors.h"

#include <ATen/DLConvertor.h>
#include <ATen/ops/from_blob.h>

#include <utility>

namespace lancet::python {
namespace {

namespace nb = nanobind;

constexpr const char* kCapsule = "dltensor";  // a consumed capsule has another name

void drop(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kCapsule) == 0) return;
  auto* tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kCapsule));
  tensor->deleter(tensor);
}

}  // namespace

nb::object to_capsule(const Tensor& tensor) {
  if (!tensor.defined()) return nb::none();
  DLManagedTensor* const managed = at::toDLPack(tensor);
  PyObject* const capsule = PyCapsule_New(managed, kCapsule, drop);
  if (capsule == nullptr) {
    managed->deleter(managed);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

nb::object to_capsule(const std::vector<float>& numbers, std::shared_ptr<const void> owner) {
  // torch needs a mutable pointer, but the memory is only read
  void* const memory = const_cast<float*>(numbers.data());
  return to_capsule(at::from_blob(
      memory, {static_cast<int64_t>(numbers.size())}, [kept = std::move(owner)](void*) {},
      at::TensorOptions(at::kFloat)));
}

}  // namespace lancet::python
