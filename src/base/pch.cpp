#include "base/pch.h"
