// Everything for language models on plain text: token indices, windows over them, the order of an epoch.
#pragma once

#include "data/epoch_order.h"  // IWYU pragma: export
#include "data/lm_windows.h"   // IWYU pragma: export
#include "data/token_index.h"  // IWYU pragma: export
