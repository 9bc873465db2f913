// A shared object without REDCO_PIPELINE.
int something() { return 1; }
