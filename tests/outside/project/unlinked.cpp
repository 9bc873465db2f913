// A shared object that needs a symbol which redco does not have.
namespace redco {
int gone(int);
}
extern "C" int redco_pipeline_abi() { return redco::gone(1); }
extern "C" void* redco_make_pipeline() { return nullptr; }
