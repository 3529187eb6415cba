#include "lancet/runtime/communicator.h"

#include <exception>

namespace lancet {

void Communicator::together(const std::string& stage, const std::function<void()>& work) {
  if (size() == 1) {
    enter(stage);
    return work();
  }
  std::string failure;
  std::exception_ptr thrown;
  try {
    enter(stage);
    work();
  } catch (const std::exception& error) {
    if (is_over_) throw;
    thrown = std::current_exception();
    failure = error.what();
    if (failure.empty()) failure = "an error without a message";
    is_over_ = true;
  }
  try {
    agree(stage, failure);
  } catch (const std::exception&) {
    is_over_ = true;
    if (!thrown) throw;
    // this rank's own error says more than that another has failed too
  }
  if (thrown) std::rethrow_exception(thrown);
}

Tensor SingleProcess::broadcast(Tensor tensor, at::Device device) { return tensor.to(device); }

Communicator& alone() {
  static SingleProcess process;
  return process;
}

}  // namespace lancet
