// Facts as pages send them: typed ones, and files in every format that lancet reads.
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
  bool are_numbered = false;  ///< ids are their places: other numbers say as much
};

/// [{prompt, subject, target, target_true, paraphrases, neighborhood}]; an empty text is none. Throws: ConfigError.
GivenRequests typed_requests(const nlohmann::json& facts);

/// Files that were sent and wait to be edited; the latest few.
class SentFiles {
 public:
  struct Sent {
    int64_t number = 0;
    std::string name = {};
    GivenRequests given = {};
    std::string format = {};
  };

  /// `folder`: for a moment the file lies there. Throws: ConfigError, by the name that the user gave it.
  Sent read(const std::filesystem::path& folder, const std::string& name, std::string_view text);
  /// Throws: ConfigError where it is gone.
  Sent find(int64_t number) const;

 private:
  std::mutex reading_;  ///< one file at a time: read, it takes many times its size
  mutable std::mutex mutex_;
  std::vector<Sent> sent_;
  int64_t last_ = 0;
};

}  // namespace lancet
