// A shared object that needs a symbol that redco hasn't (any more).
namespace redco {
int gone(int);
}
extern "C" int redco_pipeline_abi() { return redco::gone(1); }
extern "C" void* redco_make_pipeline() { return nullptr; }
