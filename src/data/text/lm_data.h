// All headers for the data of language models: token indexes and windows, example indexes and packed rows,
// the order of an epoch.
#pragma once

#include "data/index/epoch_order.h"   // IWYU pragma: export
#include "data/text/example_index.h"  // IWYU pragma: export
#include "data/text/lm_windows.h"     // IWYU pragma: export
#include "data/text/packing.h"        // IWYU pragma: export
#include "data/text/token_index.h"    // IWYU pragma: export
