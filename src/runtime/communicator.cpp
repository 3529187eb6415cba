#include "lancet/runtime/communicator.h"

#include <exception>

#include "lancet/runtime/memory.h"

namespace lancet {
namespace {

ExitCode exit_code_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return own->exit_code();
  return is_out_of_memory(error) ? ExitCode::kPlacement : ExitCode::kInternal;
}

}  // namespace

void Communicator::together(const std::string& stage, const std::function<void()>& work) {
  if (size() == 1) {
    enter(stage);
    return work();
  }
  Failure failure;
  std::exception_ptr thrown;
  try {
    enter(stage);
    work();
  } catch (const std::exception& error) {
    // a collective within `work` that failed: the others have told it, or the connection to them is gone
    const bool is_known = dynamic_cast<const CollectiveError*>(&error) != nullptr;
    if (is_over_ || is_known) throw;
    thrown = std::current_exception();
    failure = {error.what(), exit_code_of(error)};
    if (failure.message.empty()) failure.message = "an error without a message";
    is_over_ = true;
  }
  try {
    agree(stage, thrown ? &failure : nullptr);
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
