#include "lancet/runtime/communicator.h"

#include <exception>

#include "lancet/core/heartbeat.h"

namespace lancet {

void Communicator::together(const std::string& stage, const std::function<void()>& work) {
  const StageHeartbeat heartbeat(stage);
  std::string failure;
  std::exception_ptr thrown;
  try {
    work();
  } catch (const std::exception& error) {
    thrown = std::current_exception();
    failure = error.what();
    if (failure.empty()) failure = "an error without a message";
  }
  if (!thrown) return agree(stage, "");
  try {
    agree(stage, failure);
  } catch (const std::exception&) {
    // this rank's own error says more than that another has failed too
  }
  std::rethrow_exception(thrown);
}

Tensor SingleProcess::broadcast(Tensor tensor, at::Device device) { return tensor.to(device); }

}  // namespace lancet
