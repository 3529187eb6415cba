// What one rank says to another, beside the collectives of all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet {

struct RankMessage {
  int64_t kind = 0;  ///< meaning between the two that talk
  std::vector<int64_t> numbers = {};
  std::vector<std::string> texts = {};
  std::vector<Tensor> tensors = {};  ///< tensors of any type and shape, some perhaps undefined
};

/// All of a message but the numbers in its tensors, of which it has types and shapes.
std::string head_of(const RankMessage& message);

/// The message of such a head, with tensors on the host, without values. Throws: CollectiveError for another text.
RankMessage parse_head(std::string_view head);

/// Reads the numbers of a message, one after another.
class MessageReader {
 public:
  explicit MessageReader(const RankMessage& message) : message_(message) {}
  /// Throws: CollectiveError when there is none left, as the next ones do.
  int64_t number();
  /// A list that was written as its length and its numbers.
  std::vector<int64_t> list();
  Tensor tensor();

 private:
  const RankMessage& message_;
  size_t next_number_ = 0;
  size_t next_tensor_ = 0;
};

/// Adds a list as MessageReader::list() reads it.
void add_list(std::vector<int64_t>& numbers, const std::vector<int64_t>& list);

}  // namespace lancet
