// A plugin whose family has the name of a built-in one.
#include "redco.h"

struct Taken : redco::Model {
  explicit Taken(redco::ModelConfig&) {}
};

REDCO_MODEL("gpt2", Taken)
