#include "lancet/core/version.h"

namespace lancet {

const char* const kVersion = LANCET_VERSION;

}  // namespace lancet
