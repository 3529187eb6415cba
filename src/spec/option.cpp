#include "lancet/spec/option.h"

#include <algorithm>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

template <typename T>
bool lacks_default(const T& option) {
  return option.absent.empty() && option.automatic.empty() && !option.fallback;
}

struct IsRequired {
  bool operator()(const IntegerOption* option) const { return lacks_default(*option); }
  bool operator()(const NumberOption* option) const { return lacks_default(*option); }
  bool operator()(const TextOption* option) const { return option->absent.empty() && !option->fallback; }
  bool operator()(const PathOption* option) const { return option->absent.empty() && option->fallback.empty(); }
  bool operator()(const SectionOption* option) const {
    return option->absent.empty() && option->shape == Shape::kKeysOrRecords;
  }
  bool operator()(const Option*) const { return false; }
};

void add_placed(std::span<const AnyOption> keys, std::string_view method, const std::string& parent,
                std::vector<PlacedOption>& all) {
  for (const AnyOption& option : keys) {
    const Option& base = base_of(option);
    if (!method.empty() && !has_option(base, method)) continue;
    const std::string key = cat(parent, base.key);
    all.push_back({key, option});
    if (const auto* section = std::get_if<const SectionOption*>(&option))
      add_placed((*section)->keys, method, key + ".", all);
  }
}

}  // namespace

const Option& base_of(const AnyOption& option) {
  return std::visit([](const auto* one) -> const Option& { return *one; }, option);
}

bool is_required(const AnyOption& option) { return std::visit(IsRequired(), option); }

bool has_option(const Option& option, std::string_view method) {
  const std::vector<std::string> methods = split(option.methods, ' ');
  return option.methods.empty() || std::find(methods.begin(), methods.end(), method) != methods.end();
}

std::vector<PlacedOption> placed_options(std::span<const AnyOption> keys, std::string_view method) {
  std::vector<PlacedOption> all;
  add_placed(keys, method, "", all);
  return all;
}

}  // namespace lancet
