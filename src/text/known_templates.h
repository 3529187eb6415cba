// Chat templates of public checkpoints, as data: the text that each makes of one user message.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace lancet {

/// A chat template that is known; its texts are facts of public checkpoints.
struct KnownTemplate {
  std::string_view name;
  std::string_view pattern;                    ///< BOS and EOS: the checkpoint's own tokens
  bool is_trimmed = false;                     ///< the user's text loses white space at both ends
  std::vector<std::string_view> special = {};  ///< tokens that the tokenizer must know
  std::string_view no_thinking = {};           ///< put after the pattern where the answer shall begin at once
  std::string_view end = {};                   ///< ends an answer; empty: EOS alone
  /// Parts of the Jinja text without the freedoms of its spelling: quotes are ', line ends are written out, there are
  /// no spaces beside + | = and inside of braces, and {{ for {{-.
  std::vector<std::string_view> has;
  std::vector<std::string_view> has_not = {};  ///< what would make another text of one user message
};

/// Known templates. Those of one name stand together: they are spelt differently and make the same text, but for BOS.
std::span<const KnownTemplate> known_templates();

}  // namespace lancet
