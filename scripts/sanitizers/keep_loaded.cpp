// Part of redco in sanitizer builds: libraries stay loaded, so that the leak sanitizer can name the library
// of each allocation (scripts/sanitizers/lsan.supp). MPI unloads its plugins at the end.
extern "C" int dlclose(void*) { return 0; }
