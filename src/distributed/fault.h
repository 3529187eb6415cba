// Deliberate faults, for tests of what happens to a job when a rank fails, dies or hangs.
#pragma once

#include <cstdint>
#include <string>

namespace lancet {

/// With LANCET_FAULT=list, prints the name of every stage on stderr. With
/// LANCET_FAULT=rank=R,stage=S,do=throw|kill|stall, and if this is rank R at the beginning of stage S: throws
/// NumericError, ends the process with SIGKILL, or never returns. Has no effect if the variable is not set. Throws:
/// ConfigError if it has another value.
void inject_fault(int64_t rank, const std::string& stage);

}  // namespace lancet
