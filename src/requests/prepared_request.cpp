#include "lancet/requests/prepared_request.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";  // "▁"

/// Returns the ids that the public codes use for a target.
std::vector<TokenId> published_target(const Tokenizer& tokenizer, const std::string& target, Compat compat) {
  std::vector<TokenId> ids = tokenizer.ids(target.starts_with(' ') ? target : " " + target, SpecialTokens::kNone);
  const auto is_blank = [&](TokenId id) {
    std::string piece = tokenizer.piece(id);
    while (piece.starts_with(kSpaceSymbol)) piece.erase(0, kSpaceSymbol.size());
    return piece.empty();
  };
  if (compat == Compat::kMemit && ids.size() > 1 && is_blank(ids.front())) ids.erase(ids.begin());
  return ids;
}

/// Places the target as the public codes do (see Compat).
void place_as_published(const Tokenizer& tokenizer, const EditRequest& request, std::span<const std::string> contexts,
                        PreparedRequest& prepared) {
  const std::vector<TokenId>& target = prepared.target;
  const std::string tail = tokenizer.decode(std::span(target).first(target.size() - 1));
  for (const std::string& context : contexts) {
    SubjectPrompt placed = place_in_context(context, request.prompt);
    prepared.prompts.push_back(locate_by_count(tokenizer, placed));
    placed.text += tail;
    TargetRow row{locate_by_count(tokenizer, placed), target};
    if (static_cast<int64_t>(row.ids.size() - target.size()) < row.lookup)
      throw ConfigError(cat("request ", prepared.id, ": editor.compat: the target's ", target.size(), " labels in \"",
                            placed.text, "\" would begin before the subject's last token, where no ",
                            "edit reaches: let the prompt go on after the subject, or leave compat out"));
    prepared.rows.push_back(std::move(row));
  }
}

/// Finds the prompt in a context, as it is before the target, and the target after it.
TargetRow locate_in_context(const Tokenizer& tokenizer, const EditRequest& request, const std::string& context,
                            const ContinuedPrompt& plain) {
  const SubjectPrompt placed = place_in_context(context, request.prompt);
  if (context.ends_with(kPlaceMark) && !plain.joins) return {locate_subject(tokenizer, placed), plain.target};
  const std::string where = cat("request ", request.id, ", context template \"", context, "\"");
  ContinuedPrompt continued = continue_prompt(tokenizer, placed.text, request.target, where);
  return {locate_subject(placed, std::move(continued.prompt)), std::move(continued.target)};
}

void place(const Tokenizer& tokenizer, const EditRequest& request, std::span<const std::string> contexts,
           const ContinuedPrompt& plain, PreparedRequest& prepared) {
  for (const std::string& context : contexts) {
    TargetRow row = locate_in_context(tokenizer, request, context, plain);
    prepared.prompts.push_back(row);
    row.ids.insert(row.ids.end(), row.target.begin(), row.target.end() - 1);
    prepared.rows.push_back(std::move(row));
  }
}

/// Adds the request's own other wordings of the prompt, as further contexts.
void place_rewordings(const Tokenizer& tokenizer, const EditRequest& request, PreparedRequest& prepared) {
  for (const std::string& text : request.rewordings) {
    const std::string where = cat("request ", request.id, ", rewording \"", text, "\"");
    const SubjectPrompt filled = fill_prompt(text, request.subject, where);
    ContinuedPrompt continued = continue_prompt(tokenizer, filled.text, request.target, where);
    TargetRow row{locate_subject(filled, std::move(continued.prompt)), std::move(continued.target)};
    prepared.prompts.push_back(row);
    row.ids.insert(row.ids.end(), row.target.begin(), row.target.end() - 1);
    prepared.rows.push_back(std::move(row));
  }
}

/// All requests have as many contexts as the one with the most: the others see their plain prompts again.
void repeat_plain_prompts(std::vector<PreparedRequest>& all) {
  size_t most = 0;
  for (const PreparedRequest& prepared : all) most = std::max(most, prepared.prompts.size());
  for (PreparedRequest& prepared : all) {
    prepared.prompts.resize(most, prepared.prompts.front());
    prepared.rows.resize(most, prepared.rows.front());
  }
}

void refuse_rewordings(const EditRequest& request, const TargetForm& form) {
  if (request.rewordings.empty()) return;
  if (form.chunk_tokens > 0)
    throw ConfigError(cat("request ", request.id,
                          ": rewordings: expected none with editor.values.chunk_tokens: after other words a target may "
                          "have other chunks"));
  if (form.compat != Compat::kNone)
    throw ConfigError(cat("request ", request.id, ": rewordings: expected none with editor.compat: no public code ",
                          "edits in other words than the prompt's"));
}

/// Appends a token to the target, in rows whose last positions predict the target without it.
void end_target(TokenId end, PreparedRequest& prepared) {
  for (TargetRow& row : prepared.rows) {
    row.ids.push_back(row.target.back());
    row.target.push_back(end);
  }
  prepared.target.push_back(end);
}

/// Returns the prompt in a context up to its last token, and the target after it with the same ids as after the plain
/// prompt, so that chunks begin at the same places everywhere.
TargetRow place_at_end(const Tokenizer& tokenizer, const EditRequest& request, const std::string& context,
                       const std::vector<TokenId>& target) {
  const std::string where = cat("request ", request.id, ", context template \"", context, "\"");
  const std::string text = place_in_context(context, request.prompt).text;
  ContinuedPrompt continued = continue_prompt(tokenizer, text, request.target, where);
  if (continued.target != target)
    throw ConfigError(cat(where,
                          ": editor.values.chunk_tokens: expected the target's tokens to be those that they are ",
                          "after the plain prompt, got others: leave the context out"));
  if (continued.prompt.ids.empty())
    throw ConfigError(cat(where, ": editor.values.chunk_tokens: expected a token before the target, got none"));
  TargetRow row{{std::move(continued.prompt.ids)}, std::move(continued.target)};
  row.lookup = std::ssize(row.ids) - 1;
  row.ids.insert(row.ids.end(), row.target.begin(), row.target.end() - 1);
  return row;
}

/// Prepares the whole request, with the prompt's last token as its lookup token.
PreparedRequest prepare_to_cut(const Tokenizer& tokenizer, const EditRequest& request,
                               std::span<const std::string> contexts, const TargetForm& form) {
  PreparedRequest whole;
  whole.id = request.id;
  whole.target = continue_prompt(tokenizer, request.prompt.text, request.target, cat("request ", request.id)).target;
  for (const std::string& context : contexts)
    whole.rows.push_back(place_at_end(tokenizer, request, context, whole.target));
  if (form.end) end_target(*form.end, whole);
  return whole;
}

void cut(const PreparedRequest& whole, int64_t chunk_tokens, std::vector<PreparedRequest>& chunks) {
  const auto n_target = static_cast<int64_t>(whole.target.size());
  for (int64_t begin = 0; begin < n_target; begin += chunk_tokens) {
    const int64_t end = std::min(begin + chunk_tokens, n_target);
    PreparedRequest& chunk = chunks.emplace_back();
    chunk.id = whole.id;
    chunk.request = whole.request;
    chunk.chunk = begin / chunk_tokens;
    chunk.target.assign(whole.target.begin() + begin, whole.target.begin() + end);
    for (const TargetRow& row : whole.rows) {
      const auto up_to = [&](int64_t place) { return std::vector<TokenId>(row.ids.begin(), row.ids.begin() + place); };
      const int64_t lookup = row.lookup + begin;
      chunk.prompts.push_back({up_to(lookup + 1), lookup});
      chunk.rows.push_back({{up_to(row.lookup + end), lookup}, chunk.target});
    }
    chunk.drift = chunk.prompts.front();
  }
}

/// The prompts of the templates about a subject, without the prompt that is edited.
std::vector<LocatedPrompt> kept_prompts(const Tokenizer& tokenizer, const EditRequest& request,
                                        const std::vector<std::string>& templates) {
  std::vector<LocatedPrompt> kept;
  for (const std::string& text : templates) {
    LocatedPrompt prompt = locate_subject(tokenizer, fill_prompt(text, request.subject, cat("request ", request.id)));
    if (prompt.ids != locate_subject(tokenizer, request.prompt).ids) kept.push_back(std::move(prompt));
  }
  return kept;
}

PreparedRequest prepare_request(const Tokenizer& tokenizer, const EditRequest& request,
                                std::span<const std::string> contexts, const TargetForm& form) {
  refuse_rewordings(request, form);
  if (form.chunk_tokens > 0) return prepare_to_cut(tokenizer, request, contexts, form);
  const std::string where = cat("request ", request.id);
  if (request.subject.empty())
    throw ConfigError(
        cat(where, ": no subject: this method edits at the subject's last token, so each request names its subject"));
  PreparedRequest prepared;
  prepared.id = request.id;
  const SubjectPrompt drift = fill_prompt("{} is a", request.subject, where);
  // tokenised as a continuation of the prompt in both cases: a request that cannot be evaluated is refused
  const ContinuedPrompt plain = continue_prompt(tokenizer, request.prompt.text, request.target, where);
  prepared.target = plain.target;
  if (form.compat == Compat::kNone) {
    place(tokenizer, request, contexts, plain, prepared);
    place_rewordings(tokenizer, request, prepared);
    prepared.drift = locate_subject(tokenizer, drift);
  } else {
    prepared.target = published_target(tokenizer, request.target, form.compat);
    place_as_published(tokenizer, request, contexts, prepared);
    prepared.drift = locate_by_count(tokenizer, drift);
  }
  prepared.kept = kept_prompts(tokenizer, request, form.kept);
  if (form.end) end_target(*form.end, prepared);
  return prepared;
}

TokenizedRequest tokenize_request(const Tokenizer& tokenizer, const EditRequest& request,
                                  const std::optional<TokenId>& end) {
  ContinuedPrompt continued =
      continue_prompt(tokenizer, request.prompt.text, request.target, cat("request ", request.id));
  if (end) continued.target.push_back(*end);
  return {request.id, std::move(continued.prompt.ids), std::move(continued.target)};
}

/// Calls `make` for every request. One error has the problems of all of them.
template <typename T>
std::vector<T> for_all(std::span<const EditRequest> requests, const std::function<T(const EditRequest&)>& make) {
  std::vector<T> made;
  std::vector<std::string> problems;
  for (const EditRequest& request : requests) {
    try {
      made.push_back(make(request));
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  if (!problems.empty()) throw ConfigError(join(problems, "\n"));
  return made;
}

}  // namespace

std::vector<PreparedRequest> prepare_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                                              std::span<const std::string> contexts, const TargetForm& form) {
  std::vector<PreparedRequest> prepared = for_all<PreparedRequest>(
      requests, [&](const EditRequest& request) { return prepare_request(tokenizer, request, contexts, form); });
  for (size_t i = 0; i < prepared.size(); ++i) prepared[i].request = static_cast<int64_t>(i);
  if (form.chunk_tokens == 0) {
    repeat_plain_prompts(prepared);
    return prepared;
  }
  std::vector<PreparedRequest> chunks;
  for (const PreparedRequest& whole : prepared) cut(whole, form.chunk_tokens, chunks);
  return chunks;
}

std::vector<TokenizedRequest> tokenize_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                                                std::optional<TokenId> end) {
  return for_all<TokenizedRequest>(
      requests, [&](const EditRequest& request) { return tokenize_request(tokenizer, request, end); });
}

namespace {

constexpr size_t kShownTexts = 5;

}  // namespace

void TextLimit::note(const std::string& text, int64_t tokens) {
  if (noted_.insert(text).second && shown_.size() < kShownTexts) shown_.push_back(cat(text, ": ", tokens, " tokens"));
}

void TextLimit::refuse() const {
  if (noted_.empty()) return;
  throw ConfigError(cat("requests: expected texts within the model's ", max_positions_,
                        " positions (config.json: max_position_embeddings), got ", join(shown_, "; "),
                        noted_.size() > shown_.size() ? cat(" and ", noted_.size() - shown_.size(), " more") : "",
                        "; shorten or leave them out"));
}

void refuse_long_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests, int64_t max_positions) {
  TextLimit limit(max_positions);
  for (const EditRequest& request : requests) {
    const size_t target = tokenizer.ids(request.target, SpecialTokens::kNone).size();
    const auto check = [&](const std::string& prompt, const char* name) {
      const auto tokens = static_cast<int64_t>(tokenizer.ids(prompt).size() + target);
      if (!limit.has_room(tokens)) limit.note(cat("request ", request.id, ": ", name, " and target"), tokens);
    };
    check(request.prompt.text, "prompt");
    for (const std::string& text : request.rewordings)
      check(fill_prompt(text, request.subject, cat("request ", request.id)).text, "rewording");
  }
  limit.refuse();
}

}  // namespace lancet
