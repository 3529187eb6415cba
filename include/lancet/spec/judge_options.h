// `evaluate.judge` of a job as values: who says whether an answer states what it shall, and what was said so far.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lancet/spec/evaluate_spec.h"

namespace lancet {

/// What a judge says of an answer.
enum class JudgeVerdict { kNo, kYes, kUnclear };

/// Verdicts by a key of all that the judge was shown. It may be used from several threads.
class VerdictMemory {
 public:
  std::optional<JudgeVerdict> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = verdicts_.find(key);
    return found == verdicts_.end() ? std::nullopt : std::optional(found->second);
  }
  bool is_empty() const {
    const std::lock_guard lock(mutex_);
    return verdicts_.empty();
  }
  void keep(const std::string& key, JudgeVerdict verdict) {
    const std::lock_guard lock(mutex_);
    verdicts_[key] = verdict;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, JudgeVerdict> verdicts_;
};

/// A program or a server.
struct JudgeOptions {
  std::vector<std::string> command = {};             ///< program and arguments; empty: a server
  std::string url = {};                              ///< address of the server
  std::string model = {};                            ///< what the server calls the model that judges
  std::string token_env = {};                        ///< variable with the server's token; empty: none
  int64_t tokens = *JudgeSpec::kTokens.fallback;     ///< length of the server's answers
  bool may_be_remote = JudgeSpec::kRemote.fallback;  ///< the server may be on another machine
  std::filesystem::path prompt = {};                 ///< file of the question; empty: the one that ships
  int64_t seconds = *JudgeSpec::kSeconds.fallback;   ///< time for each verdict
  std::shared_ptr<VerdictMemory> memory = std::make_shared<VerdictMemory>();  ///< shared by all copies
};

}  // namespace lancet
