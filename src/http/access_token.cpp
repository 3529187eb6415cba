#include "lancet/http/access_token.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

std::string make_access_token() {
  std::array<unsigned char, 16> bytes{};
  for (size_t got = 0; got < bytes.size();) {
    const ssize_t more = ::getrandom(bytes.data() + got, bytes.size() - got, 0);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0)
      throw CheckpointError(cat("cannot read the system's random numbers: ", std::generic_category().message(errno)));
    got += static_cast<size_t>(more);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4U];
    token += kDigits[byte & 15U];
  }
  return token;
}

bool equal_in_constant_time(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < one.size(); ++i)
    difference = static_cast<unsigned char>(
        difference | (static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i])));
  return difference == 0;
}

}  // namespace lancet
