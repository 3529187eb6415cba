// What an editor keeps from one batch to the next because it takes long to compute. It follows from the other data of
// the run, so it is never stored.
#pragma once

#include <any>
#include <map>
#include <typeindex>

namespace lancet {

class KeptResults {
 public:
  /// Returns the one object of this type; it is made when it is first asked for.
  template <typename Kept>
  Kept& of_type() {
    std::any& place = by_type_[typeid(Kept)];
    if (!place.has_value()) place.emplace<Kept>();
    return *std::any_cast<Kept>(&place);
  }

 private:
  std::map<std::type_index, std::any> by_type_;
};

}  // namespace lancet
