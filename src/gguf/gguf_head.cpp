#include "lancet/gguf/gguf_head.h"

#include <algorithm>
#include <vector>

#include "head_reader.h"
#include "head_writer.h"

namespace lancet {
namespace {

/// A name with its value, as bytes of the file.
struct Entry {
  std::string_view key;
  uint64_t begin = 0, end = 0;
};

uint64_t end_of(const GgufFile& base, const GgufPlace& place) {
  HeadReader head(*base.files().front(), place.begin);
  if (place.type != GgufValueType::kText) {
    constexpr uint64_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};  // by type
    return place.begin + place.count * kBytes[static_cast<size_t>(place.type)];
  }
  for (uint64_t i = 0; i < place.count; ++i) head.skip_text();
  return head.at();
}

/// In the order of the file.
std::vector<Entry> entries_of(const GgufFile& base) {
  std::vector<Entry> entries;
  for (const auto& [key, place] : base.metadata()) {
    const uint64_t list_bytes = place.is_list ? sizeof(uint32_t) + sizeof(uint64_t) : 0;
    const uint64_t begin = place.begin - list_bytes - sizeof(uint32_t) - key.size() - sizeof(uint64_t);
    entries.push_back({key, begin, end_of(base, place)});
  }
  std::ranges::sort(entries, {}, &Entry::begin);
  return entries;
}

void put_addition(std::string& head, const GgufAddition& addition) {
  put_text(head, addition.first);
  if (const auto* text = std::get_if<std::string>(&addition.second)) {
    put_number(head, GgufValueType::kText);
    put_text(head, *text);
  } else {
    put_number(head, GgufValueType::kU32);
    put_number(head, std::get<uint32_t>(addition.second));
  }
}

}  // namespace

std::string gguf_head(const GgufFile& base, std::span<GgufWritten> tensors, std::span<const GgufAddition> additions) {
  std::vector<Entry> entries = entries_of(base);
  std::erase_if(entries, [&](const Entry& entry) {
    return entry.key.starts_with("split.") ||
           std::ranges::any_of(additions, [&](const GgufAddition& added) { return added.first == entry.key; });
  });
  std::string head = "GGUF";
  put_number(head, base.version());
  put_number(head, static_cast<uint64_t>(tensors.size()));
  put_number(head, static_cast<uint64_t>(entries.size() + additions.size()));
  for (const Entry& entry : entries) {
    std::string bytes(entry.end - entry.begin, '\0');
    base.files().front()->read(entry.begin, std::as_writable_bytes(std::span(bytes)));
    head += bytes;
  }
  for (const GgufAddition& addition : additions) put_addition(head, addition);
  uint64_t offset = 0;
  for (GgufWritten& tensor : tensors) {
    put_text(head, tensor.base->name);
    put_shape(head, tensor.base->shape);
    put_number(head, tensor.type->number);
    put_number(head, offset);
    tensor.begin = offset;
    offset = aligned_to(offset + tensor.bytes, base.alignment());
  }
  head.resize(aligned_to(head.size(), base.alignment()), '\0');
  return head;
}

}  // namespace lancet
