// The audit as a page for people: audit.json rendered as HTML.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// Returns one self-contained HTML file without a script. Throws: ConfigError when the JSON is not an audit of lancet.
std::string render_audit(std::string_view json);

}  // namespace lancet
