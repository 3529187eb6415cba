// Messages between two ranks, apart from the collectives of all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet {

struct RankMessage {
  int64_t kind = 0;  ///< meaning of the message, as the two ranks agree
  std::vector<int64_t> numbers = {};
  std::vector<std::string> texts = {};
  std::vector<Tensor> tensors = {};  ///< tensors of any type and shape; some may be undefined
};

/// Writes the head of a message: everything except the numbers in its tensors, for which it has types and shapes.
std::string head_of(const RankMessage& message);

/// Reads such a head. The message's tensors are on the host and their values are not set. Throws: CollectiveError for
/// other text.
RankMessage parse_head(std::string_view head);

/// Reads the parts of a message, one after another.
class MessageReader {
 public:
  explicit MessageReader(const RankMessage& message) : message_(message) {}
  /// Returns the next number. Throws: CollectiveError when there is none left, as the functions below do.
  int64_t number();
  /// Returns the next list, which was written as its length followed by its numbers.
  std::vector<int64_t> list();
  Tensor tensor();

 private:
  const RankMessage& message_;
  size_t next_number_ = 0;
  size_t next_tensor_ = 0;
};

/// Appends a list in the form that MessageReader::list() reads.
void add_list(std::vector<int64_t>& numbers, const std::vector<int64_t>& list);

}  // namespace lancet
