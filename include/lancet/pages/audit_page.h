// What people read of an audit: audit.json as a page.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// One file that needs nothing else, without a script. Throws: ConfigError when the JSON is no audit of lancet.
std::string render_audit(std::string_view json);

}  // namespace lancet
