#include "lancet/models/hooks.h"

#include <algorithm>
#include <stdexcept>

#include "lancet/core/strings.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

constexpr const char* kPointNames[] = {"block input",      "attention input", "attention key",
                                       "attention output", "MLP input",       "gate output",
                                       "up output",        "MLP key",         "key of the MLP beside experts",
                                       "MLP output",       "block output",    "query vector",
                                       "key vector",       "mixer key"};

void check_replacement(HookSite site, const Tensor& before, const Tensor& after) {
  check_device(after, before.device(), "hook at " + site_text(site));
  if (after.scalar_type() != before.scalar_type() || after.sizes() != before.sizes())
    throw std::logic_error(cat("hook at ", site_text(site), ": expected ", at::toString(before.scalar_type()), " ",
                               before.sizes(), ", got ", at::toString(after.scalar_type()), " ", after.sizes()));
}

}  // namespace

std::string site_text(HookSite site) {
  return cat("layer ", site.layer, ", ", kPointNames[static_cast<size_t>(site.point)]);
}

void HookSet::observe(HookSite site, std::function<void(const Tensor&)> observer) {
  hooks_[site].observers.push_back(std::move(observer));
}

void HookSet::replace(HookSite site, std::function<Tensor(const Tensor&)> replacement) {
  hooks_[site].replacements.push_back(std::move(replacement));
}

std::vector<HookSite> HookSet::sites() const {
  std::vector<HookSite> sites;
  for (const auto& [site, hooks] : hooks_) sites.push_back(site);
  std::ranges::stable_sort(sites, {}, &HookSite::layer);
  return sites;
}

bool HookSet::replaces(HookSite site) const {
  const auto at = hooks_.find(site);
  return at != hooks_.end() && !at->second.replacements.empty();
}

Tensor HookSet::apply(HookSite site, Tensor value) const {
  const auto at = hooks_.find(site);
  if (at == hooks_.end()) return value;
  for (const auto& replacement : at->second.replacements) {
    Tensor replaced = replacement(value);
    check_replacement(site, value, replaced);
    value = std::move(replaced);
  }
  for (const auto& observer : at->second.observers) observer(value);
  return value;
}

}  // namespace lancet
