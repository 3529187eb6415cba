// What can be wrong with a fake device.
#pragma once

#include <ATen/core/Tensor.h>

namespace lancet::testing {

/// Is wrong as long as this lives. One at a time.
class FakeFault {
 public:
  /// Copies from device `from` to device `to` arrive with their last byte changed; -1: the host.
  static FakeFault of_copies(int from, int to);
  /// Products of matrices (mm) on device `device` have one number that is too large by a hundredth of their norm.
  static FakeFault of_products(int device);
  FakeFault(const FakeFault&) = delete;
  FakeFault& operator=(const FakeFault&) = delete;
  ~FakeFault();

 private:
  FakeFault() = default;
};

/// Do what the fault says, on the host, to what arrived or was computed there: for the fake devices.
void spoil_copy(at::Device from, at::Device to, const at::Tensor& arrived);
void spoil_product(at::Device device, const at::Tensor& product);

}  // namespace lancet::testing
