#include "lancet/gguf/row_order.h"

namespace lancet {
namespace {

/// The file has rows 0, d/2, 1, d/2 + 1, ... of each head of d rows.
std::vector<int64_t> turned_rows(int64_t rows, int64_t heads) {
  std::vector<int64_t> order;
  const int64_t size = rows / heads, half = size / 2;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t place = row % size;
    order.push_back(row - place + (place < half ? 2 * place : 2 * (place - half) + 1));
  }
  return order;
}

std::vector<int64_t> fused_rows(int64_t rows, const GgufHeads& heads) {
  std::vector<int64_t> order;
  const int64_t size = rows / (heads.queries + 2 * heads.keys), sharing = heads.queries / heads.keys;
  const auto add_head = [&](int64_t head) {
    for (int64_t row = 0; row < size; ++row) order.push_back(head * size + row);
  };
  for (int64_t key = 0; key < heads.keys; ++key) {
    for (int64_t query = 0; query < sharing; ++query) add_head(key * sharing + query);
    add_head(heads.queries + key);
    add_head(heads.queries + heads.keys + key);
  }
  return order;
}

}  // namespace

std::vector<int64_t> file_rows(GgufChange change, int64_t rows, const GgufHeads& heads) {
  switch (change) {
    case GgufChange::kHeadRows:
      return turned_rows(rows, heads.queries);
    case GgufChange::kKvHeadRows:
      return turned_rows(rows, heads.keys);
    case GgufChange::kByKeyHead:
      return fused_rows(rows, heads);
    case GgufChange::kNone:
    case GgufChange::kLessOne:
    case GgufChange::kLogDecay:
    case GgufChange::kTransposed:
      break;
  }
  return {};
}

bool moves_rows(GgufChange change) {
  return change == GgufChange::kHeadRows || change == GgufChange::kKvHeadRows || change == GgufChange::kByKeyHead;
}

bool fits_rows(GgufChange change, int64_t rows, const GgufHeads& heads) {
  switch (change) {
    case GgufChange::kHeadRows:
      return heads.queries > 0 && rows % (2 * heads.queries) == 0;
    case GgufChange::kKvHeadRows:
      return heads.keys > 0 && rows % (2 * heads.keys) == 0;
    case GgufChange::kByKeyHead:
      return heads.keys > 0 && heads.queries > 0 && heads.queries % heads.keys == 0 &&
             rows % (heads.queries + 2 * heads.keys) == 0;
    case GgufChange::kNone:
    case GgufChange::kLessOne:
    case GgufChange::kLogDecay:
    case GgufChange::kTransposed:
      break;
  }
  return true;
}

}  // namespace lancet
