#include "fault.h"

#include <csignal>
#include <cstdlib>
#include <regex>
#include <thread>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"

namespace lancet {

void inject_fault(int64_t rank, const std::string& stage) {
  const char* fault = std::getenv("LANCET_FAULT");
  if (fault == nullptr) return;
  if (std::string(fault) == "list") return log_warning(cat("LANCET_FAULT: stage '", stage, "'"));
  std::cmatch match;
  if (!std::regex_match(fault, match, std::regex("rank=([0-9]{1,6}),stage=([^,]+),do=(throw|kill|stall)")))
    throw ConfigError(
        cat("LANCET_FAULT: '", fault, "': expected rank=R,stage=NAME,do=throw|kill|stall, or list, or unset it"));
  if (std::stoll(match[1]) != rank || match[2] != stage) return;
  log_warning(cat("LANCET_FAULT: ", match[3].str(), " in stage '", stage, "'"));
  if (match[3] == "throw") throw NumericError("LANCET_FAULT asked for this failure");
  if (match[3] == "kill") std::raise(SIGKILL);
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace lancet
