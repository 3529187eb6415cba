#include "lancet/editor_parts/null_space_rule.h"

#include "lancet/spec/read_option.h"

namespace lancet {

NullSpaceRule parse_null_space_rule(ConfigSection& editor) {
  NullSpaceRule rule;
  if (const std::optional<double> share = parse_share(editor, LayeredSpec::kNullSpaceBelow))
    rule.share = *share;
  else
    rule.below = read_or_auto(editor, LayeredSpec::kNullSpaceBelow);
  return rule;
}

}  // namespace lancet
