// Faults on purpose, for tests of what happens to a job when a rank fails, dies or stalls.
#pragma once

#include <cstdint>
#include <string>

namespace lancet {

/// LANCET_FAULT=list names every stage on stderr. Where the environment says
/// LANCET_FAULT=rank=R,stage=S,do=throw|kill|stall and this is rank R at the beginning of stage S: throws NumericError,
/// ends the process with SIGKILL, or never returns. Does nothing when it is not set. Throws: ConfigError when it is set
/// to something else.
void inject_fault(int64_t rank, const std::string& stage);

}  // namespace lancet
