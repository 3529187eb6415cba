#include "lancet/pipeline/facts_at_odds.h"

#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/core/words.h"
#include "lancet/requests/same_fact.h"

namespace lancet {
namespace {

constexpr size_t kShown = 3;

std::string first_of(const std::vector<std::string>& texts, std::string_view separator = "; ") {
  const std::span<const std::string> shown(texts.data(), std::min(kShown, texts.size()));
  return cat(join(shown, separator), texts.size() > kShown ? cat(" and ", texts.size() - kShown, " more") : "");
}

/// "'London' and 'Rome' after 'Piranha Games, created in'".
std::string targets_text(const EditRequest& one, const EditRequest& other) {
  return cat("'", excerpt(one.target, 40), "' and '", excerpt(other.target, 40), "' after '",
             excerpt(other.prompt.text, 60), "'");
}

std::string joined_text(std::span<const std::string> joined) {
  return cat(counted(joined.size(), "request"), joined.size() == 1 ? " says" : " say",
             " what an earlier one does, and a fact is edited once: ", first_of({joined.begin(), joined.end()}, ", "));
}

std::string contradictions_text(std::span<const EditRequest> requests) {
  std::vector<std::string> pairs;
  for (const auto& [first, second] : find_contradictions(requests))
    pairs.push_back(cat("requests ", requests[first].id, " and ", requests[second].id, ": ",
                        targets_text(requests[first], requests[second])));
  if (pairs.empty()) return {};
  return cat("contradiction: one fact has one target, and not both of ", first_of(pairs),
             ": leave one of each out, or edit them one after another (schedule.batch: 1), and the later one holds");
}

/// Compares what stands with the job's first word on each fact: what it says later contradicts itself.
std::vector<std::string> standing_texts(const EditedFacts& facts) {
  LatestFacts standing, seen;
  for (const EditRequest& edit : facts.standing) standing.replace(edit);
  std::vector<std::string> replaced, again;
  for (const EditRequest& request : facts.requests) {
    const EditRequest* earlier = standing.find(request);
    if (seen.replace(request) != nullptr || earlier == nullptr) continue;
    if (has_same_target(*earlier, request))
      again.push_back(cat(request.id, " (as ", earlier->id, ")"));
    else
      replaced.push_back(cat("request ", request.id, " and edit ", earlier->id, ": ", targets_text(request, *earlier)));
  }
  std::vector<std::string> lines;
  if (!replaced.empty())
    lines.push_back(
        cat("contradiction with ", counted(replaced.size(), "edit"), " that ",
            replaced.size() == 1 ? "stands, which it replaces: " : "stand, which they replace: ", first_of(replaced)));
  if (!again.empty())
    lines.push_back(cat(counted(again.size(), "request"), again.size() == 1 ? " says" : " say",
                        " what an edit that stands does, and is edited again: ", first_of(again, ", ")));
  return lines;
}

}  // namespace

std::vector<std::string> facts_at_odds(const EditedFacts& facts) {
  std::vector<std::string> lines;
  if (!facts.joined.empty()) lines.push_back(joined_text(facts.joined));
  if (std::string text = contradictions_text(facts.requests); !text.empty()) lines.push_back(std::move(text));
  for (std::string& line : standing_texts(facts)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace lancet
