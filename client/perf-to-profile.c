/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/perf-to-profile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "client/frame/context.h"
#include "client/profctl.h"
#include "util/macro.h"

/*
 * `pprof perf.data` looks for a program perf_to_profile and calls it with an input, an output and
 * -f, which means that the output may exist. What it gets is what `profctl pprof` writes, with
 * labels, times and all events. pprof has opened the output before and reads that very file, so it
 * is written in place.
 */

bool perf_to_profile_is(const char *program) {
    const char *slash = program ? strrchr(program, '/') : NULL;

    return program && strcmp(slash ? slash + 1 : program, "perf_to_profile") == 0;
}

/* The value of an option, as "-i FILE", "-i=FILE" or "--i=FILE"; NULL: this is another word. */
static const char *perf_to_profile_value(char option, int argc, char **argv, int *at) {
    const char *word = argv[*at];

    if (*word != '-')
        return NULL;
    word += word[1] == '-' ? 2 : 1;
    if (word[0] != option)
        return NULL;
    if (word[1] == '=')
        return word + 2;
    return word[1] == '\0' && *at + 1 < argc ? argv[++*at] : NULL;
}

int perf_to_profile_run(int argc, char **argv) {
    const char *in = NULL, *out = NULL, *value;
    _cleanup_close_ int fd = -1;
    bool force = false, known = true;
    int status;

    for (int i = 1; i < argc && known; i++) {
        if ((value = perf_to_profile_value('i', argc, argv, &i)))
            in = value;
        else if ((value = perf_to_profile_value('o', argc, argv, &i)))
            out = value;
        else
            force = known = strcmp(argv[i], "-f") == 0 || strcmp(argv[i], "--f") == 0;
    }
    if (!known || !in || !out)
        return complain(STATUS_USAGE, "The usage is 'perf_to_profile -i FILE -o OUT [-f]'; "
                                      "'profctl pprof' can do more.");
    fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (force ? 0 : O_EXCL), 0666);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
        return complain(STATUS_FAILED, "Failed to open '%s': %s.", out, strerror(errno));
    status = client_run(4, (char *[]){"profctl", "pprof", "--quiet", (char *)in, NULL});
    /* pprof takes the profile of status 0 alone. Why it is partial stands on stderr. */
    return status == STATUS_PARTIAL ? STATUS_OK : status;
}
