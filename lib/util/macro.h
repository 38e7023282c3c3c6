/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The macros that every room uses: scope-bound clean-up, transfer of ownership and arithmetic on
 * sizes. Destructors accept NULL (or -1 for descriptors) and return NULL (or -1).
 */

#include <assert.h>
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f)       __attribute__((cleanup(f)))
#define _cleanup_free_     _cleanup_(freep)
#define _cleanup_close_    _cleanup_(closep)
#define _cleanup_closedir_ _cleanup_(closedirp)
#define _unused_           __attribute__((unused))
#define _printf_(a, b)     __attribute__((format(printf, a, b)))

/* Defines fp(), the clean-up helper of a destructor f() that returns NULL. */
#define DEFINE_CLEANUP(type, f)                                                                    \
    static inline void f##p(type *p) {                                                             \
        *p = f(*p);                                                                                \
    }                                                                                              \
    struct swallow_the_semicolon_##f

#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __typeof__(p) *_pp = &(p);                                                                 \
        __typeof__(p) _taken = *_pp;                                                               \
        *_pp = NULL;                                                                               \
        _taken;                                                                                    \
    })

#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int *_pfd = &(fd);                                                                         \
        int _taken = *_pfd;                                                                        \
        *_pfd = -1;                                                                                \
        _taken;                                                                                    \
    })

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define MIN(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) _a = (a);                                                                    \
        __typeof__(b) _b = (b);                                                                    \
        _a < _b ? _a : _b;                                                                         \
    })
#define MAX(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) _a = (a);                                                                    \
        __typeof__(b) _b = (b);                                                                    \
        _a > _b ? _a : _b;                                                                         \
    })

/* Rounds up to a multiple of 8; the caller must have bounded x. */
#define ALIGN8(x) (((x) + 7) & ~(__typeof__(x))7)

static inline void freep(void *p) {
    free(*(void **)p);
    *(void **)p = NULL;
}

static inline void closedirp(DIR **dir) {
    if (*dir)
        (void)closedir(*dir);
    *dir = NULL;
}

static inline void closep(int *fd) {
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}
