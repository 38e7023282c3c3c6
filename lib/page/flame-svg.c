/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page.h"

#include <errno.h>

/* A flame graph as a picture without a script, see page_flame_svg(). */

int page_flame_svg(const PageInput *input, const PageFlameOptions *options, PageSink sink,
                   void *arg) {
    return -ENOTSUP;
}
