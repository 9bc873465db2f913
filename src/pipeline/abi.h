// The binary interface between redco and users' shared objects: a hash of redco's public headers, made by the
// build (cmake/abi_hash.cmake), and what the compiler of the shared object adds to it. Any change of a class
// that users see changes the hash, so a shared object that was built against other headers is refused.
#pragma once

#include <fmt/core.h>

#include <string>

#ifndef REDCO_ABI_HASH
#include <redco_abi_hash>
#endif

#define REDCO_ABI_TEXT_(x) #x
#define REDCO_ABI_TEXT(x) REDCO_ABI_TEXT_(x)
#if defined(_GLIBCXX_DEBUG)
#define REDCO_ABI_DEBUG ", _GLIBCXX_DEBUG"
#else
#define REDCO_ABI_DEBUG ""
#endif
#if defined(_GLIBCXX_RELEASE)
#define REDCO_ABI_LIBRARY                                       \
  "libstdc++ " REDCO_ABI_TEXT(_GLIBCXX_RELEASE) REDCO_ABI_DEBUG \
      ", _GLIBCXX_USE_CXX11_ABI=" REDCO_ABI_TEXT(_GLIBCXX_USE_CXX11_ABI)
#else
#define REDCO_ABI_LIBRARY "another C++ library"
#endif
// "1f00a2e4c6b8d0f2, libstdc++ 12, _GLIBCXX_USE_CXX11_ABI=1, fmt 90100, C++ 202002L"
#define REDCO_ABI                       \
  REDCO_ABI_HASH ", " REDCO_ABI_LIBRARY \
                 ", fmt " REDCO_ABI_TEXT(FMT_VERSION) ", C++ " REDCO_ABI_TEXT(__cplusplus)

// A text in the file of each shared object, so that redco can read it without loading the object.
#define REDCO_ABI_BEGIN "redco-abi<"
#define REDCO_ABI_END ">"

namespace redco {

// REDCO_ABI of the library itself.
std::string library_abi();

}  // namespace redco
