/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/profctl.h"

/* The process around profctl, apart so that tests can link all the rest. */

int main(int argc, char **argv) {
    return client_run(argc, argv);
}
