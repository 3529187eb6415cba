#include "lancet/core/version.h"
#include "lancet/diff/edits_diff.h"
#include "lancet/outcome/report_json.h"

namespace lancet {
namespace {

Json edit_json(const EditRequest& request) {
  Json json{{"id", request.id}, {"prompt", request.prompt.text}, {"subject", request.subject}};
  if (!request.relation.empty()) json["relation"] = request.relation;
  json["target"] = request.target;
  return json;
}

Json list_of(const std::vector<EditRequest>& requests) {
  Json list = Json::array();
  for (const EditRequest& request : requests) list.push_back(edit_json(request));
  return list;
}

Json side_json(const std::filesystem::path& folder, const JournalBase& base, size_t superseded) {
  return {{"folder", folder.string()},
          {"base", {{"folder", base.folder}, {"content_hash", base.weights}}},
          {"superseded", superseded}};
}

}  // namespace

std::string to_json(const EditsDiff& diff, const std::filesystem::path& before, const std::filesystem::path& after) {
  Json contradictions = Json::array();
  for (const auto& [one, other] : diff.contradictions)
    contradictions.push_back({{"before", edit_json(one)}, {"after", edit_json(other)}});
  return dump_report({{"format", "lancet-edits-diff-1"},
                      {"lancet", kVersion},
                      {"before", side_json(before, diff.base_before, diff.superseded_before)},
                      {"after", side_json(after, diff.base_after, diff.superseded_after)},
                      {"same_base", diff.has_one_base()},
                      {"common", diff.common},
                      {"only_before", list_of(diff.only_before)},
                      {"only_after", list_of(diff.only_after)},
                      {"contradictions", std::move(contradictions)}});
}

}  // namespace lancet
