// What each method's file offers to the registry.
#pragma once

#include <memory>

#include "lancet/edit/editor.h"

namespace lancet {

std::unique_ptr<Editor> make_memit(ConfigSection& editor);

}  // namespace lancet
