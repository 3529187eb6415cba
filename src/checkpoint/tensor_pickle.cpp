#include "tensor_pickle.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

static_assert(std::endian::native == std::endian::little, "pickles are little endian and numbers are used in place");

constexpr size_t kMostDimensions = 16;

/// The opcodes that a tensor needs, of protocol 2.
constexpr char kProtocol = '\x80', kGlobal = 'c', kMark = '(', kTuple = 't', kTuple1 = '\x85', kEmptyTuple = ')';
constexpr char kText = 'X', kByte = 'K', kShort = 'M', kInt = 'J', kLong = '\x8a', kTrue = '\x88', kFalse = '\x89';
constexpr char kStorage = 'Q', kReduce = 'R', kStop = '.', kRemember = 'q', kRememberLong = 'r';

class PickleReader {
 public:
  PickleReader(std::string_view pickle, const ZipPlace& place) : left_(pickle), size_(pickle.size()), place_(place) {}

  TensorPickle parse() {
    expect(kProtocol);
    expect('\2');
    expect_global("torch._utils", "_rebuild_tensor_v2");
    expect(kMark);
    TensorPickle tensor;
    expect(kMark);
    if (take_text() != "storage") fail();
    tensor.storage_type = take_storage_type();
    tensor.storage_key = take_text();
    take_text();  // the device
    tensor.storage_numel = take_integer();
    end_value(kTuple);
    expect(kStorage);
    tensor.offset = take_integer();
    tensor.sizes = take_integers();
    tensor.strides = take_integers();
    if (!accept(kTrue)) expect(kFalse);           // requires_grad
    expect_global("collections", "OrderedDict");  // backward hooks, none
    expect(kEmptyTuple);
    end_value(kReduce);
    end_value(kTuple);
    end_value(kReduce);
    expect(kStop);
    if (!left_.empty()) fail();
    return tensor;
  }

 private:
  [[noreturn]] void fail() const {
    place_.fail("one tensor, as torch.save writes it",
                cat("something else at byte ", size_ - left_.size(), " of its pickle"), place_.kind.rewrite);
  }

  bool accept(char opcode) {
    if (!left_.starts_with(opcode)) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char opcode) {
    if (!accept(opcode)) fail();
  }
  std::string_view take(size_t count) {
    if (count > left_.size()) fail();
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  template <typename T>
  T take_number() {
    T number{};
    std::memcpy(&number, take(sizeof(T)).data(), sizeof(T));
    return number;
  }

  /// The end of a value, which torch.save may remember for later; it never comes back to one here.
  void end_value(char opcode) {
    expect(opcode);
    skip_remembering();
  }
  void skip_remembering() {
    if (accept(kRemember))
      take(1);
    else if (accept(kRememberLong))
      take(4);
  }

  std::string_view take_line() {
    const size_t end = left_.find('\n');
    if (end == std::string_view::npos) fail();
    const std::string_view line = take(end);
    take(1);
    return line;
  }
  void expect_global(std::string_view module, std::string_view name) {
    expect(kGlobal);
    if (take_line() != module || take_line() != name) fail();
    skip_remembering();
  }
  std::string take_storage_type() {
    expect(kGlobal);
    if (take_line() != "torch") fail();
    std::string type(take_line());
    skip_remembering();
    return type;
  }
  std::string take_text() {
    expect(kText);
    std::string text(take(take_number<uint32_t>()));
    skip_remembering();
    return text;
  }

  bool begins_integer() const {
    return !left_.empty() &&
           std::string_view{kIntegers, sizeof kIntegers}.find(left_.front()) != std::string_view::npos;
  }
  /// Takes an integer that is not negative.
  int64_t take_integer() {
    int64_t value = -1;
    if (accept(kByte))
      value = take_number<uint8_t>();
    else if (accept(kShort))
      value = take_number<uint16_t>();
    else if (accept(kInt))
      value = take_number<int32_t>();
    else if (accept(kLong))
      value = take_long();
    if (value < 0) fail();
    return value;
  }
  /// Two's complement in as few bytes as it takes.
  int64_t take_long() {
    const size_t count = take_number<uint8_t>();
    if (count == 0 || count > sizeof(int64_t)) fail();
    const std::string_view bytes = take(count);
    int64_t value = bytes.back() < 0 ? -1 : 0;
    std::memcpy(&value, bytes.data(), count);
    return value;
  }
  /// A tuple: one to three numbers have an opcode each that ends them, more stand after a mark.
  std::vector<int64_t> take_integers() {
    std::vector<int64_t> numbers;
    const bool is_marked = accept(kMark);
    while (begins_integer() && numbers.size() < kMostDimensions) numbers.push_back(take_integer());
    if (is_marked)
      end_value(kTuple);
    else if (numbers.empty())
      end_value(kEmptyTuple);
    else if (numbers.size() <= 3)
      end_value(static_cast<char>(kTuple1 + static_cast<char>(numbers.size() - 1)));
    else
      fail();
    return numbers;
  }

  static constexpr char kIntegers[] = {kByte, kShort, kInt, kLong};

  std::string_view left_;
  size_t size_;
  const ZipPlace& place_;
};

}  // namespace

TensorPickle parse_tensor_pickle(std::string_view pickle, const ZipPlace& place) {
  return PickleReader(pickle, place).parse();
}

}  // namespace lancet
