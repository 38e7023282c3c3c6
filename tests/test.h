/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A test is a plain C program. TEST(a_sentence) { … } registers a function; the program ends with
 * TEST_MAIN(). A CHECK that fails prints its position and leaves the function. Output is TAP; the
 * exit status is 0 (passed), 1 (failed) or 77 (everything skipped). A word on the command line runs
 * only the tests whose names contain it.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct TestCase {
    const char *name;
    void (*run)(void);
    struct TestCase *next;
} TestCase;

static TestCase *test_first, **test_last = &test_first;
static bool test_failed;
static char test_skipped[256];

#define TEST(n)                                                                                    \
    static void n(void);                                                                           \
    __attribute__((constructor)) static void test_register_##n(void) {                             \
        static TestCase c = {.name = #n, .run = n};                                                \
        *test_last = &c;                                                                           \
        test_last = &c.next;                                                                       \
    }                                                                                              \
    static void n(void)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition);                               \
            test_failed = true;                                                                    \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define CHECK_EQ(a, b)                                                                             \
    do {                                                                                           \
        __typeof__(a) _a = (a);                                                                    \
        __typeof__(b) _b = (b);                                                                    \
        if (_a != (__typeof__(a))_b) {                                                             \
            printf(                                                                                \
                "# %s:%d: %s is %" PRIi64 " (0x%" PRIx64 "), %s is %" PRIi64 " (0x%" PRIx64 ")\n", \
                __FILE__, __LINE__, #a, (int64_t)_a, (uint64_t)_a, #b, (int64_t)_b, (uint64_t)_b); \
            test_failed = true;                                                                    \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define CHECK_OK(expression)                                                                       \
    do {                                                                                           \
        int64_t _r = (expression);                                                                 \
        if (_r < 0) {                                                                              \
            printf("# %s:%d: %s: %s\n", __FILE__, __LINE__, #expression, strerror((int)-_r));      \
            test_failed = true;                                                                    \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define CHECK_STREQ(a, b)                                                                          \
    do {                                                                                           \
        const char *_a = (a), *_b = (b);                                                           \
        if (strcmp(_a, _b) != 0) {                                                                 \
            printf("# %s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #a, _a, _b);         \
            test_failed = true;                                                                    \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* Leaves the function as neither passed nor failed; the text says what the machine lacks. */
#define TEST_SKIP(...)                                                                             \
    do {                                                                                           \
        snprintf(test_skipped, sizeof(test_skipped), __VA_ARGS__);                                 \
        return;                                                                                    \
    } while (0)

static inline int test_main(int argc, char **argv) {
    unsigned n = 0, failed = 0, skipped = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (TestCase *c = test_first; c; c = c->next) {
        if (argc > 1 && !strstr(c->name, argv[1]))
            continue;
        test_failed = false;
        test_skipped[0] = '\0';
        c->run();
        n++;
        failed += test_failed;
        skipped += !test_failed && test_skipped[0] != '\0';
        printf("%s %u - %s%s%s\n", test_failed ? "not ok" : "ok", n, c->name,
               !test_failed && test_skipped[0] ? " # SKIP " : "",
               !test_failed && test_skipped[0] ? test_skipped : "");
    }
    printf("1..%u\n", n);
    return failed ? 1 : n > 0 && skipped == n ? 77 : 0;
}

#define TEST_MAIN()                                                                                \
    int main(int argc, char **argv) {                                                              \
        return test_main(argc, argv);                                                              \
    }
