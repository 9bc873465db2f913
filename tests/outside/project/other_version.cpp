// A pipeline that declares another version of redco.
extern "C" int redco_pipeline_abi() { return 1000001; }
extern "C" void* redco_make_pipeline() { return nullptr; }
