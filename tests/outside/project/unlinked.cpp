// A pipeline that needs a symbol which redco does not have.
#include "redco.h"

namespace redco {
int gone(int);
}

class Unlinked : public redco::Pipeline {
  redco::Batch collate(std::span<const redco::Example>, const redco::BatchShape&) const override {
    return {};
  }
  redco::LossTerms loss(const redco::ParamTree&, const redco::Batch&,
                        const redco::StepContext&) const override {
    redco::gone(1);
    return {};
  }
};

REDCO_PIPELINE(Unlinked)
