// Facts that pages send: typed ones, and files in every format that lancet reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/journal/journal.h"
#include "lancet/requests/request.h"

namespace lancet {

struct GivenRequests {
  std::vector<EditRequest> requests = {};
  bool are_numbered = false;  ///< the ids are only indices, so other ids would do as well
};

/// Reads [{prompt, subject, target, target_true, paraphrases, neighborhood}]. An empty text counts as absent. Throws:
/// ConfigError.
GivenRequests typed_requests(const nlohmann::json& facts);

/// Files that were sent and wait to be edited: the latest few.
class SentFiles {
 public:
  struct Sent {
    int64_t number = 0;
    std::string name = {};
    GivenRequests given = {};
    std::string format = {};
  };

  /// `folder`: the file is in this folder for a moment. Throws: ConfigError that names the file by the user's name.
  Sent read(const std::filesystem::path& folder, const std::string& name, std::string_view text);
  /// Throws: ConfigError if the file is gone.
  Sent find(int64_t number) const;

 private:
  std::mutex reading_;  ///< only one file is read at a time, because it takes many times its size
  mutable std::mutex mutex_;
  std::vector<Sent> sent_;
  int64_t last_ = 0;
};

}  // namespace lancet
