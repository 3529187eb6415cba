#include "fake_fault.h"

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/select.h>

#include <atomic>

namespace lancet::testing {
namespace {

constexpr int kNoFault = -2;
std::atomic<int> broken_from{kNoFault}, broken_to{kNoFault}, broken_products{kNoFault};

/// -1: the host.
int number_of(at::Device device) { return device.is_cpu() ? -1 : device.index(); }

}  // namespace

void spoil_copy(at::Device from, at::Device to, const at::Tensor& arrived) {
  if (from == to || number_of(from) != broken_from || number_of(to) != broken_to || arrived.nbytes() == 0) return;
  static_cast<uint8_t*>(arrived.data_ptr())[arrived.nbytes() - 1] ^= 1;
}

void spoil_product(at::Device device, const at::Tensor& product) {
  if (number_of(device) != broken_products || product.numel() == 0) return;
  product.view(-1).select(0, 0).add_(at::linalg_vector_norm(product), 0.01);
}

FakeFault FakeFault::of_copies(int from, int to) {
  broken_from = from;
  broken_to = to;
  return {};
}

FakeFault FakeFault::of_products(int device) {
  broken_products = device;
  return {};
}

FakeFault::~FakeFault() { broken_from = broken_to = broken_products = kNoFault; }

}  // namespace lancet::testing
