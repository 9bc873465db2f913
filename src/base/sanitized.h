// REDCO_SANITIZED: whether a sanitizer checks this program. GCC and clang tell it in different ways.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REDCO_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REDCO_SANITIZED 1
#endif
#endif
#ifndef REDCO_SANITIZED
#define REDCO_SANITIZED 0
#endif
