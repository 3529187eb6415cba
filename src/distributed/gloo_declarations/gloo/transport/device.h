#pragma once

#include <gloo/declarations.h>
