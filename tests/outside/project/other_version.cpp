// A pipeline that was built against other headers of redco. Its constructor must not run.
extern "C" const char redco_abi_text[] = "redco-abi<0123456789abcdef, libstdc++ 12>";
extern "C" void* redco_make_pipeline() { __builtin_trap(); }
