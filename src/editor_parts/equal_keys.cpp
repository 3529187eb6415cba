#include "lancet/editor_parts/equal_keys.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "lancet/core/strings.h"
#include "lancet/spec/layered_spec.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

constexpr double kNearCosine = 0.99;

/// The smallest column of the group that column `i` is in by now.
size_t root_of(std::vector<size_t>& parents, size_t i) {
  while (parents[i] != i) i = parents[i] = parents[parents[i]];
  return i;
}

}  // namespace

EqualKeys parse_equal_keys(ConfigSection& editor) { return read<EqualKeys>(editor, LayeredSpec::kEqualKeys); }

KeyGroups group_by_key(std::span<const PreparedRequest> requests) {
  KeyGroups groups;
  std::map<std::vector<TokenId>, size_t> places;
  for (size_t i = 0; i < requests.size(); ++i) {
    const LocatedPrompt& plain = requests[i].prompts[0];
    const std::vector<TokenId> ids(plain.ids.begin(), plain.ids.begin() + plain.lookup + 1);
    const auto [place, is_new] = places.emplace(ids, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(static_cast<int64_t>(i));
  }
  return groups;
}

std::vector<KeyGroups> plan_rounds(const KeyGroups& groups, EqualKeys handling) {
  if (handling == EqualKeys::kMean) return {groups};
  std::vector<KeyGroups> rounds(1);
  for (const std::vector<int64_t>& group : groups) {
    for (size_t i = 0; i < group.size(); ++i) {
      const size_t round = handling == EqualKeys::kSplit ? i : 0;
      if (round == rounds.size()) rounds.emplace_back();
      rounds[round].push_back({group[i]});
    }
  }
  for (KeyGroups& round : rounds) std::sort(round.begin(), round.end());
  return rounds;
}

LowRankDelta by_request(const LowRankDelta& delta, const KeyGroups& groups, int64_t n_requests) {
  std::vector<int64_t> owners, members;
  std::vector<double> parts;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int64_t member : groups[g]) {
      owners.push_back(static_cast<int64_t>(g));
      members.push_back(member);
      parts.push_back(1.0 / static_cast<double>(groups[g].size()));
    }
  }
  const auto on = [&](const Tensor& tensor) { return tensor.to(delta.left_OR.device()); };
  const Tensor owner_M = on(torch::tensor(owners, torch::kLong)), member_M = on(torch::tensor(members, torch::kLong));
  const Tensor part_M = on(torch::tensor(parts, torch::kDouble));
  const Tensor left_ON = torch::zeros({delta.left_OR.size(0), n_requests}, delta.left_OR.options());
  const Tensor right_NI = torch::zeros({n_requests, delta.right_RI.size(1)}, delta.right_RI.options());
  return {left_ON.index_copy(1, member_M, delta.left_OR.index_select(1, owner_M) * part_M),
          right_NI.index_copy(0, member_M, delta.right_RI.index_select(0, owner_M))};
}

KeyGroups shared_keys(const KeyGroups& groups) {
  KeyGroups shared;
  for (const std::vector<int64_t>& group : groups)
    if (group.size() > 1) shared.push_back(group);
  return shared;
}

std::string equal_keys_effect(EqualKeys handling) {
  return cat("have the same key: ", handling == EqualKeys::kMean
                                        ? "they get one target, the mean of theirs"
                                        : "they are edited one after another, and the last one prevails");
}

KeyGroups near_keys(const Tensor& keys_FN) {
  const Tensor unit = keys_FN / keys_FN.norm(2, 0, /*keepdim=*/true);
  const Tensor near_NN = (torch::matmul(unit.t(), unit) > kNearCosine).to(Placement::host()).contiguous();
  const auto n = static_cast<size_t>(near_NN.size(0));
  const bool* near = near_NN.const_data_ptr<bool>();
  std::vector<size_t> parents(n);
  std::iota(parents.begin(), parents.end(), size_t{0});
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j)
      if (near[i * n + j]) {
        const auto [first, second] = std::minmax({root_of(parents, i), root_of(parents, j)});
        parents[second] = first;
      }
  KeyGroups groups(n);
  for (size_t i = 0; i < n; ++i) groups[root_of(parents, i)].push_back(static_cast<int64_t>(i));
  return shared_keys(groups);
}

std::string near_keys_effect() {
  return cat("have nearly the same key (cosine > ", kNearCosine,
             "): each pulls it to its own value, and none may be reached; editor.equal_keys: mean or split handles ",
             "those that are equal");
}

}  // namespace lancet
