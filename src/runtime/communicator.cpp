#include "lancet/runtime/communicator.h"

#include <cstring>
#include <exception>
#include <stdexcept>

#include "lancet/core/progress.h"
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
    // a collective inside `work` failed: the others already know it, or the connection to them is lost
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
    // this rank's own error says more than the failure of another one
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
    is_over_ = false;  // all ranks have been here, so each has reported its error or heard of one
  } catch (...) {
    is_attempting_ = false;
    throw;
  }
  is_attempting_ = false;
  if (size() == 1) return message;
  // the others' message names the rank; all ranks report the words of the first one that failed
  for (const std::string& words : gather(message.value_or("")))
    if (!words.empty()) return words;
  return std::nullopt;
}

void Communicator::send(int64_t, const RankMessage&) { throw std::logic_error("send: there is no other rank"); }

RankMessage Communicator::receive(int64_t) { throw std::logic_error("receive: there is no other rank"); }

Tensor SingleProcess::broadcast(Tensor tensor, at::Device device) { return tensor.to(device); }

Communicator& alone() {
  static thread_local SingleProcess process;  // one for each thread, because it notes failures of its own job
  return process;
}

namespace {

std::string to_bytes(const std::vector<int64_t>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)};
}

std::vector<int64_t> to_numbers(const std::string& bytes) {
  std::vector<int64_t> numbers(bytes.size() / sizeof(int64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(int64_t));
  return numbers;
}

}  // namespace

std::vector<int64_t> broadcast_numbers(Communicator& communicator, const std::vector<int64_t>& numbers) {
  if (communicator.size() == 1) return numbers;
  return to_numbers(communicator.broadcast(to_bytes(numbers)));
}

std::vector<std::string> broadcast_texts(Communicator& communicator, const std::vector<std::string>& texts) {
  if (communicator.size() == 1) return texts;
  std::vector<int64_t> lengths;
  std::string joined;
  for (const std::string& text : texts) {
    lengths.push_back(static_cast<int64_t>(text.size()));
    joined += text;
  }
  lengths = broadcast_numbers(communicator, lengths);
  joined = communicator.broadcast(std::move(joined));
  std::vector<std::string> received;
  size_t at = 0;
  for (const int64_t length : lengths) {
    received.push_back(joined.substr(at, static_cast<size_t>(length)));
    at += static_cast<size_t>(length);
  }
  return received;
}

std::vector<std::vector<int64_t>> gather_numbers(Communicator& communicator, const std::vector<int64_t>& numbers) {
  if (communicator.size() == 1) return {numbers};
  std::vector<std::vector<int64_t>> all;
  for (const std::string& bytes : communicator.gather(to_bytes(numbers))) all.push_back(to_numbers(bytes));
  return all;
}

std::vector<size_t> own_pieces(const Communicator& communicator, size_t count) {
  std::vector<size_t> own;
  for (size_t i = 0; i < count; ++i)
    if (communicator.is_mine(static_cast<int64_t>(i))) own.push_back(i);
  return own;
}

}  // namespace lancet
