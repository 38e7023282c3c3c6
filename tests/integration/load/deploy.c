/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>

#include "load.h"

/*
 * One program in several builds, each of which works in a function of another name at about the
 * same address: WORK names it. Who takes one build for another shows the wrong name.
 *
 * Usage: deploy MILLISECONDS
 */

#define DEFINE_WORK(name) LOAD_DEFINE_WORK(name)
#define CALL_WORK(name)   CALL_WORK_(name)
#define CALL_WORK_(name)  name##_work

DEFINE_WORK(WORK)

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "Usage: deploy MILLISECONDS\n");
        return 2;
    }
    printf("ready\n");
    fflush(stdout);
    (void)CALL_WORK(WORK)(load_number(argv[1]) * LOAD_NS_PER_MS);
    return EXIT_SUCCESS;
}
