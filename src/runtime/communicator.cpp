#include "lancet/runtime/communicator.h"

#include <exception>
#include <stdexcept>

#include "lancet/core/heartbeat.h"
#include "lancet/runtime/problem.h"

namespace lancet {
void Communicator::run_collectively(const std::string& stage, const std::function<void()>& work) {
  const StageHeartbeat heartbeat(stage);
  if (size() == 1) {
    count_progress();
    enter(stage);
    return work();
  }
  Failure failure;
  std::exception_ptr thrown;
  try {
    count_progress();
    enter(stage);
    work();
  } catch (const std::exception& error) {
    // a collective within `work` that failed: the others have told it, or the connection to them is gone
    const bool is_known =
        dynamic_cast<const CollectiveError*>(&error) != nullptr || dynamic_cast<const AttemptEnded*>(&error) != nullptr;
    if (is_over_ || is_known) throw;
    thrown = std::current_exception();
    const bool ends_job = !is_attempting_ || dynamic_cast<const NumericError*>(&error) == nullptr;
    Problem problem = problem_of(error);
    failure = {std::move(problem.message), problem.code, ends_job};
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

std::optional<std::string> Communicator::attempt(const std::string& stage, const std::function<void()>& work) {
  is_attempting_ = true;
  std::optional<std::string> message;
  try {
    run_collectively(stage, work);
  } catch (const NumericError& error) {
    message = error.what();
    is_over_ = false;  // all ranks have come here: each has told it, or been told
  } catch (...) {
    is_attempting_ = false;
    throw;
  }
  is_attempting_ = false;
  if (size() == 1) return message;
  // what the others were told names the rank: the first rank's own words for all
  for (const std::string& words : gather(message.value_or("")))
    if (!words.empty()) return words;
  return std::nullopt;
}

void Communicator::send(int64_t, const RankMessage&) { throw std::logic_error("send: there is no other rank"); }

RankMessage Communicator::receive(int64_t) { throw std::logic_error("receive: there is no other rank"); }

Tensor SingleProcess::broadcast(Tensor tensor, at::Device device) { return tensor.to(device); }

Communicator& alone() {
  static thread_local SingleProcess process;  // it notes failures, which are of one job
  return process;
}

}  // namespace lancet
