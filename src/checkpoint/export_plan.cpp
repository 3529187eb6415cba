#include "export_plan.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "safetensors_format.h"

namespace lancet {
namespace {

using Sources = std::map<std::string_view, const TensorSource*>;

std::string tensor_place(const Checkpoint& base, std::string_view name) {
  return cat(base.folder().string(), ": tensor '", printable(name), "': ");
}

Sources check_replaced(const Checkpoint& base, std::span<const TensorSource> replaced) {
  Sources by_name;
  for (const TensorSource& tensor : replaced) {
    const TensorInfo& info = base.info(tensor.name);
    const std::string where = tensor_place(base, tensor.name);
    if (tensor.dtype != info.dtype || tensor.shape != info.shape)
      throw CheckpointError(cat(where, "expected ", dtype_name(info.dtype), " ", shape_text(info.shape), ", got ",
                                dtype_name(tensor.dtype), " ", shape_text(tensor.shape),
                                "; convert it to the base's form"));
    if (tensor.bytes.size() != info.end - info.begin)
      throw CheckpointError(cat(where, "expected ", info.end - info.begin, " bytes, got ", tensor.bytes.size(),
                                "; make the data agree with the shape"));
    if (!by_name.emplace(tensor.name, &tensor).second)
      throw CheckpointError(where + "expected one replacement, got two; give each tensor once");
  }
  return by_name;
}

/// Checks what is exchanged, and returns it by removed tensor.
std::map<std::string_view, const TensorExchange*> check_removed(const Checkpoint& base, const Sources& replaced,
                                                                std::span<const TensorExchange> exchanged) {
  std::map<std::string_view, const TensorExchange*> by_name;
  for (const TensorExchange& exchange : exchanged) {
    if (exchange.removed.empty() || exchange.added.empty())
      throw CheckpointError(cat(base.folder().string(), ": expected tensors to take out and tensors to put in their ",
                                "place, got ", exchange.removed.size(), " and ", exchange.added.size(),
                                "; name at least one of each"));
    for (const std::string& name : exchange.removed) {
      base.info(name);
      if (!by_name.emplace(name, &exchange).second || replaced.contains(name))
        throw CheckpointError(tensor_place(base, name) +
                              "expected to be taken out once and not replaced, got more than one change of it; give "
                              "each tensor once");
    }
  }
  return by_name;
}

void check_added(const Checkpoint& base, const std::map<std::string_view, const TensorExchange*>& removed,
                 std::span<const TensorExchange> exchanged) {
  std::set<std::string_view> names;
  for (const TensorExchange& exchange : exchanged)
    for (const TensorSource& tensor : exchange.added) {
      const std::string where = tensor_place(base, tensor.name);
      if (!names.insert(tensor.name).second || (base.contains(tensor.name) && !removed.contains(tensor.name)))
        throw CheckpointError(where +
                              "expected a name that no other tensor has, got one that is taken; take that "
                              "tensor out, or choose another name");
      const auto expected = stored_bytes(tensor.dtype, tensor.shape);
      if (!expected || *expected != tensor.bytes.size())
        throw CheckpointError(cat(where, "expected the bytes of ", dtype_name(tensor.dtype), " ",
                                  shape_text(tensor.shape), ", got ", tensor.bytes.size(),
                                  " bytes; make the data agree with the shape"));
    }
}

bool is_aligned(const std::vector<ExportedTensor>& tensors) {
  uint64_t offset = 0;
  for (const ExportedTensor& tensor : tensors) {
    if (offset % static_cast<uint64_t>(bytes_per_element(tensor.dtype())) != 0) return false;
    offset += tensor.size_bytes();
  }
  return true;
}

}  // namespace

uint64_t ExportPlan::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const ExportedShard& shard : shards)
    for (const ExportedTensor& tensor : shard.tensors) bytes += tensor.size_bytes();
  return bytes;
}

ExportPlan plan_export(const Checkpoint& base, const CheckpointChanges& changes) {
  const Sources replaced = check_replaced(base, changes.replaced);
  const auto removed = check_removed(base, replaced, changes.exchanged);
  check_added(base, removed, changes.exchanged);
  ExportPlan plan;
  std::set<const TensorExchange*> placed;
  for (const SafetensorsReader& shard : base.shards()) {
    ExportedShard& out = plan.shards.emplace_back();
    for (const TensorInfo& info : shard.tensors()) {
      const auto exchange = removed.find(info.name);
      if (exchange == removed.end()) {
        const auto source = replaced.find(info.name);
        out.tensors.push_back({&info, source == replaced.end() ? nullptr : source->second});
        continue;
      }
      out.keeps_layout = false;
      plan.removed.insert(info.name);
      if (!placed.insert(exchange->second).second) continue;
      plan.exchange_at.emplace(info.name, exchange->second);
      for (const TensorSource& tensor : exchange->second->added) out.tensors.push_back({nullptr, &tensor});
    }
    if (!out.keeps_layout && !is_aligned(out.tensors))
      std::ranges::stable_sort(out.tensors, std::ranges::greater(),
                               [](const ExportedTensor& tensor) { return bytes_per_element(tensor.dtype()); });
  }
  return plan;
}

}  // namespace lancet
