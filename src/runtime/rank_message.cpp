#include "lancet/runtime/rank_message.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "lancet/core/error.h"

namespace lancet {
namespace {

constexpr int64_t kUndefined = -1;

class HeadWriter {
 public:
  void add(int64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void add(const std::string& text) {
    add(std::ssize(text));
    bytes_ += text;
  }
  void add(at::IntArrayRef numbers) {
    add(static_cast<int64_t>(numbers.size()));
    for (const int64_t number : numbers) add(number);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class HeadReader {
 public:
  explicit HeadReader(std::string_view bytes) : left_(bytes) {}

  int64_t number() {
    int64_t number = 0;
    std::memcpy(&number, bytes(sizeof number).data(), sizeof number);
    return number;
  }
  std::string text() { return std::string(bytes(number())); }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> numbers(static_cast<size_t>(count(sizeof(int64_t))));
    for (int64_t& entry : numbers) entry = number();
    return numbers;
  }
  /// Reads how many values follow. Each takes at least `least` bytes.
  int64_t count(size_t least) {
    const int64_t n = number();
    if (n < 0 || n > static_cast<int64_t>(left_.size() / least)) throw cut_off();
    return n;
  }

 private:
  std::string_view bytes(int64_t n) {
    if (n < 0 || n > std::ssize(left_)) throw cut_off();
    const std::string_view taken = left_.substr(0, static_cast<size_t>(n));
    left_.remove_prefix(static_cast<size_t>(n));
    return taken;
  }

  static CollectiveError cut_off() {
    return CollectiveError("a message of another rank ends too early: a defect in lancet, or different versions of it");
  }

  std::string_view left_;
};

[[noreturn]] void throw_short() {
  throw CollectiveError(
      "a message of another rank has less than was expected: a defect in lancet, or different versions of it");
}

}  // namespace

std::string head_of(const RankMessage& message) {
  HeadWriter head;
  head.add(message.kind);
  head.add(at::IntArrayRef(message.numbers));
  head.add(std::ssize(message.texts));
  for (const std::string& text : message.texts) head.add(text);
  head.add(std::ssize(message.tensors));
  for (const Tensor& tensor : message.tensors) {
    head.add(tensor.defined() ? static_cast<int64_t>(tensor.scalar_type()) : kUndefined);
    if (tensor.defined()) head.add(tensor.sizes());
  }
  return head.take();
}

RankMessage parse_head(std::string_view text) {
  HeadReader head(text);
  RankMessage message{.kind = head.number()};
  message.numbers = head.numbers();
  for (int64_t left = head.count(sizeof(int64_t)); left > 0; --left) message.texts.push_back(head.text());
  for (int64_t left = head.count(sizeof(int64_t)); left > 0; --left) {
    const int64_t type = head.number();
    message.tensors.push_back(type == kUndefined ? Tensor()
                                                 : at::empty(head.numbers(), static_cast<at::ScalarType>(type)));
  }
  return message;
}

int64_t MessageReader::number() {
  if (next_number_ >= message_.numbers.size()) throw_short();
  return message_.numbers[next_number_++];
}

std::vector<int64_t> MessageReader::list() {
  const int64_t length = number();
  if (length < 0 || length > std::ssize(message_.numbers) - static_cast<int64_t>(next_number_)) throw_short();
  const auto begin = message_.numbers.begin() + static_cast<std::ptrdiff_t>(next_number_);
  next_number_ += static_cast<size_t>(length);
  return {begin, begin + length};
}

Tensor MessageReader::tensor() {
  if (next_tensor_ >= message_.tensors.size()) throw_short();
  return message_.tensors[next_tensor_++];
}

void add_list(std::vector<int64_t>& numbers, const std::vector<int64_t>& list) {
  numbers.push_back(std::ssize(list));
  numbers.insert(numbers.end(), list.begin(), list.end());
}

}  // namespace lancet
