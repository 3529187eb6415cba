// A key of config.json that lancet alone has, for what a GGUF file has in another order than the model's class.
#pragma once

namespace lancet {

/// Whether value head v of a gated delta rule reads key head v % key_heads, in place of v / (value_heads / key_heads).
inline constexpr const char* kTiledValueHeads = "lancet_tiled_value_heads";

}  // namespace lancet
