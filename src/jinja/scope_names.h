// Collects the names of one scope.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "nodes.h"

namespace lancet {

class JinjaScopeNames {
 public:
  /// `outer` must outlive this object; null if there is none.
  explicit JinjaScopeNames(const JinjaScopeNames* outer) : outer_(outer) {}

  /// Returns where the name's value is, seen from this scope.
  std::optional<JinjaSlot> find(const std::string& name) const {
    if (known_.contains(name)) return JinjaSlot{0, places_->at(name)};
    if (outer_ == nullptr) return std::nullopt;
    std::optional<JinjaSlot> found = outer_->find(name);
    if (found) ++found->hops;
    return found;
  }

  void read(const std::string& name) {
    if (!find(name)) define(name, {.kind = JinjaLoad::Kind::kVariable, .name = name});
  }

  void set(const std::string& name) {
    set_.insert(name);
    if (known_.contains(name)) return;
    define(name, outer_load(name).value_or(JinjaLoad{}));
  }

  size_t add_parameter(const std::string& name) {
    set_.insert(name);
    return define(name, {.kind = JinjaLoad::Kind::kParameter});
  }

  /// Merges what the branches of an `if`, which are copies of this object, found. A name that only one branch sets has
  /// its outer value in the others.
  void merge(std::span<const JinjaScopeNames> branches) {
    std::set<std::string> only_there;
    for (const JinjaScopeNames& branch : branches)
      for (const std::string& name : branch.set_)
        if (!set_.contains(name)) only_there.insert(name);
    for (const JinjaScopeNames& branch : branches) {
      known_.insert(branch.known_.begin(), branch.known_.end());
      set_.insert(branch.set_.begin(), branch.set_.end());
      for (const auto& [name, load] : branch.loads_) loads_[name] = load;
    }
    for (const std::string& name : only_there)
      loads_[name] = outer_load(name).value_or(JinjaLoad{.kind = JinjaLoad::Kind::kVariable, .name = name});
  }

  JinjaScopePlan plan() const {
    JinjaScopePlan made;
    made.loads.resize(places_->size());
    for (const auto& [name, load] : loads_) made.loads[places_->at(name)] = load;
    return made;
  }

 private:
  std::optional<JinjaLoad> outer_load(const std::string& name) const {
    if (outer_ == nullptr) return std::nullopt;
    const std::optional<JinjaSlot> found = outer_->find(name);
    if (!found) return std::nullopt;
    return JinjaLoad{.kind = JinjaLoad::Kind::kOuter, .outer = *found};
  }

  size_t define(const std::string& name, JinjaLoad load) {
    known_.insert(name);
    loads_[name] = std::move(load);
    return places_->try_emplace(name, places_->size()).first->second;
  }

  const JinjaScopeNames* outer_;
  std::shared_ptr<std::map<std::string, size_t>> places_ = std::make_shared<std::map<std::string, size_t>>();
  std::set<std::string> known_, set_;
  std::map<std::string, JinjaLoad> loads_;
};

}  // namespace lancet
