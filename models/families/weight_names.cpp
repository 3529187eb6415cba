#include "weight_names.h"

#include <algorithm>
#include <vector>

#include "lancet/checkpoint/checkpoint.h"
#include "lancet/core/strings.h"
#include "lancet/models/weight_table.h"

namespace lancet {
namespace {

/// The beginning that torch.compile gives to the names of a compiled model.
constexpr std::string_view kCompiled = "_orig_mod.";

/// Returns sets of names that checkpoints of any family may have: those of a model that was saved without its head,
/// whose beginning is missing ("layers.0..." instead of "model.layers.0..."), and those of a compiled model.
std::vector<PrefixList> names_of_any_family(const Family& family) {
  const auto* embedding = std::ranges::find(family.weights, WeightKind::kEmbedding, &WeightRow::kind);
  const std::string_view begin = embedding->name.substr(0, embedding->name.find('.') + 1);
  return {PrefixList{{begin, ""}}, PrefixList{{"", kCompiled}}};
}

}  // namespace

std::string own_name(const std::string& name, const PrefixList& names) {
  for (const NamePrefix& prefix : names)
    if (!prefix.to.empty() && name.starts_with(prefix.to))
      return cat(prefix.from, std::string_view(name).substr(prefix.to.size()));
  for (const NamePrefix& prefix : names)
    if (prefix.to.empty()) return cat(prefix.from, name);
  return name;
}

bool has_compiled_names(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensor_names(), [](const auto& name) { return name.starts_with(kCompiled); });
}

std::string renamed(const std::string& name, std::span<const NamePrefix> prefixes) {
  for (const NamePrefix& prefix : prefixes)
    if (name.starts_with(prefix.from)) return cat(prefix.to, std::string_view(name).substr(prefix.from.size()));
  return name;
}

PrefixList names_used(const ModelConfig& config, std::span<const WeightSpec> table, const Checkpoint& checkpoint) {
  const auto count_found = [&](const PrefixList& names) {
    return std::count_if(table.begin(), table.end(), [&](const WeightSpec& spec) {
      return checkpoint.contains(renamed(spec.stored.tensors.front(), names));
    });
  };
  PrefixList best;
  int64_t most = count_found(best);
  std::vector<PrefixList> others(config.family->other_names.begin(), config.family->other_names.end());
  for (const PrefixList& names : names_of_any_family(*config.family)) others.push_back(names);
  for (const PrefixList& names : others)
    if (const int64_t found = count_found(names); found > most) {
      best = names;
      most = found;
    }
  return best;
}

}  // namespace lancet
