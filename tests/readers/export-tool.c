/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "export/make-shop.h"

/* export-tool FORMAT: writes the hand-made profile of the unit tests in a format to stdout, for
 * readers that none of us wrote. */

static int tool_write(const void *data, size_t size, void *arg) {
    return fwrite(data, 1, size, arg) == size ? 0 : -EIO;
}

int main(int argc, char **argv) {
    const ExportFormat *format = argc == 2 ? export_format_by_name(argv[1]) : NULL;
    MadeProfile made = make_shop();
    ExportInput input = {.profile = made.profile,
                         .names = made.names,
                         .event = PROFILE_NONE,
                         .by_period = true,
                         .title = "host"};
    int r = format ? format->write(&input, tool_write, stdout) : -EINVAL;

    made_profile_done(&made);
    return r < 0 || fflush(stdout) != 0;
}
