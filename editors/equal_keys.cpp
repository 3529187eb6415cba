#include "equal_keys.h"

#include <torch/types.h>

#include <algorithm>
#include <map>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr double kNearCosine = 0.99;

std::string ids_text(const std::vector<int64_t>& group, std::span<const PreparedRequest> requests) {
  std::vector<std::string> ids;
  for (const int64_t index : group) ids.push_back(requests[static_cast<size_t>(index)].id);
  const std::string last = ids.back();
  ids.pop_back();
  return cat(join(ids), " and ", last);
}

}  // namespace

EqualKeys parse_equal_keys(ConfigSection& editor) {
  return editor.choice_of<EqualKeys>("equal_keys", {"warn", "mean", "split"});
}

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

std::vector<std::string> equal_key_warnings(const KeyGroups& groups, std::span<const PreparedRequest> requests,
                                            EqualKeys handling) {
  const std::string_view what = handling == EqualKeys::kMean
                                    ? "they get one target, the mean of theirs"
                                    : "they are edited one after another, and the last one prevails";
  std::vector<std::string> warnings;
  for (const std::vector<int64_t>& group : groups)
    if (group.size() > 1) warnings.push_back(cat("requests ", ids_text(group, requests), " have the same key: ", what));
  return warnings;
}

std::vector<std::string> near_key_warnings(const Tensor& keys_FN, std::span<const PreparedRequest> requests) {
  const Tensor unit = keys_FN / keys_FN.norm(2, 0, /*keepdim=*/true);
  const Tensor near_P2 = (torch::matmul(unit.t(), unit).triu(1) > kNearCosine).nonzero().to(Placement::host());
  std::vector<std::string> warnings;
  for (int64_t i = 0; i < near_P2.size(0); ++i) {
    const std::vector<int64_t> pair{near_P2[i][0].item<int64_t>(), near_P2[i][1].item<int64_t>()};
    warnings.push_back(cat("requests ", ids_text(pair, requests), " have nearly the same key (cosine > ", kNearCosine,
                           "): each pulls it to its own value, and neither may be reached"));
  }
  return warnings;
}

}  // namespace lancet
