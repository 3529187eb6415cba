// What each method's settings say of modules. A method is a file here and a row in quant_scheme.cpp.
#pragma once

#include "module_rules.h"
#include "scheme_keys.h"

namespace lancet {

ModuleRules read_bitsandbytes(SchemeKeys& keys);
ModuleRules read_gptq(SchemeKeys& keys);
ModuleRules read_awq(SchemeKeys& keys);
ModuleRules read_float8(SchemeKeys& keys);
ModuleRules read_fbgemm_float8(SchemeKeys& keys);
ModuleRules read_compressed_tensors(SchemeKeys& keys);

/// A rule for each text of a list; an expression that cannot be read is a problem of the key.
void add_rules(SchemeKeys& keys, std::string_view key, RuleText kind, std::optional<MatrixCode> code,
               ModuleRules& rules);

}  // namespace lancet
