#include "given_requests.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lancet/core/config_tree.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/http/access_token.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kKeptFiles = 4;
/// The largest number of facts in one file. More is work for a job, and would take memory that all users of the page
/// share.
constexpr int64_t kMostFacts = 10'000;

bool are_places(const std::vector<EditRequest>& requests) {
  for (size_t i = 0; i < requests.size(); ++i)
    if (requests[i].id != std::to_string(i)) return false;
  return true;
}

std::string fact_text(const nlohmann::json& fact, const char* key, size_t number) {
  const auto found = fact.find(key);
  if (found == fact.end()) return "";
  if (!found->is_string()) throw ConfigError(cat("fact ", number, ": ", key, ": expected a text"));
  return found->get<std::string>();
}

/// Returns the texts of a list, without empty ones.
std::vector<ConfigTree> fact_texts(const nlohmann::json& fact, const char* key, size_t number) {
  std::vector<ConfigTree> texts;
  const auto found = fact.find(key);
  if (found == fact.end()) return texts;
  const auto is_text = [](const nlohmann::json& one) { return one.is_string(); };
  if (!found->is_array() || !std::ranges::all_of(*found, is_text))
    throw ConfigError(cat("fact ", number, ": ", key, ": expected a list of texts"));
  for (const nlohmann::json& text : *found)
    if (!text.get<std::string>().empty()) texts.push_back(ConfigTree::text(text.get<std::string>()));
  return texts;
}

/// A file that exists during the lifetime of this object.
class ShortLivedFile {
 public:
  ShortLivedFile(const fs::path& folder, const std::string& ending, std::string_view text)
      : path_(folder / cat(".sent-", make_access_token(), ending)) {
    make_folders(folder);
    write_text_file(path_, text);
  }
  ~ShortLivedFile() {
    std::error_code unused;
    fs::remove(path_, unused);
  }
  ShortLivedFile(const ShortLivedFile&) = delete;
  ShortLivedFile& operator=(const ShortLivedFile&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::string ending_of(const std::string& name) {
  for (const char* ending : {".json", ".jsonl", ".csv"})
    if (name.ends_with(ending)) return ending;
  throw ConfigError(cat(excerpt(name, 80), ": expected a file whose name ends with .json, .jsonl or .csv"));
}

}  // namespace

GivenRequests typed_requests(const nlohmann::json& facts) {
  if (!facts.is_array() || facts.empty()) throw ConfigError("facts: expected a list with at least one fact");
  std::vector<ConfigTree> records;
  for (size_t i = 0; i < facts.size(); ++i) {
    if (!facts[i].is_object()) throw ConfigError(cat("fact ", i + 1, ": expected prompt, subject and target"));
    ConfigTree record = ConfigTree::map();
    for (const char* key : {"prompt", "subject", "target", "target_true"})
      if (std::string text = fact_text(facts[i], key, i + 1); !text.empty())
        record.set(key, ConfigTree::text(std::move(text)));
    for (const char* key : {"paraphrases", "neighborhood"})
      if (std::vector<ConfigTree> texts = fact_texts(facts[i], key, i + 1); !texts.empty())
        record.set(key, ConfigTree::list(std::move(texts)));
    records.push_back(std::move(record));
  }
  return {parse_requests(ConfigTree::list(std::move(records))), true};
}

SentFiles::Sent SentFiles::read(const fs::path& folder, const std::string& name, std::string_view text) {
  const std::lock_guard one_at_a_time(reading_);
  const ShortLivedFile file(folder, ending_of(name), text);
  Sent sent{.name = name};
  try {
    RequestFileOptions options;
    options.range.limit = kMostFacts + 1;
    RequestFile read = load_request_file(file.path(), options);
    if (static_cast<int64_t>(read.requests.size()) > kMostFacts)
      throw ConfigError(cat(name, ": expected at most ", kMostFacts, " facts, got more: send a part of them, or edit ",
                            "them by a job, with lancet edit"));
    sent.format = read.format;
    sent.given.are_numbered = are_places(read.requests);
    sent.given.requests = std::move(read.requests);
  } catch (const ConfigError& error) {
    throw ConfigError(replaced(error.what(), file.path().string(), name));
  }
  const std::lock_guard lock(mutex_);
  sent.number = ++last_;
  sent_.push_back(sent);
  if (sent_.size() > kKeptFiles) sent_.erase(sent_.begin());
  return sent;
}

SentFiles::Sent SentFiles::find(int64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(sent_, number, &Sent::number);
  if (found == sent_.end()) throw ConfigError("the file is no longer here: send it again");
  return *found;
}

}  // namespace lancet
