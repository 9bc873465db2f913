// Precompiled headers of the kernels, whose compiler options (-fopenmp, instruction sets) are not those of
// base/pch.h.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/types.h"
