#include "pch.h"

int main() {}
