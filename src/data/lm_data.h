// All headers for the data of language models: token indexes and windows, example indexes and packed rows,
// the order of an epoch.
#pragma once

#include "data/epoch_order.h"    // IWYU pragma: export
#include "data/example_index.h"  // IWYU pragma: export
#include "data/example_rows.h"   // IWYU pragma: export
#include "data/lm_windows.h"     // IWYU pragma: export
#include "data/token_index.h"    // IWYU pragma: export
