// A pipeline of another redco, as far as can be seen before it is used.
extern "C" int redco_pipeline_abi() { return 1000001; }
extern "C" void* redco_make_pipeline() { return nullptr; }
