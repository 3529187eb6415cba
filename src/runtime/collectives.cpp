#include "lancet/runtime/collectives.h"

#include <cstring>

namespace lancet {
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
