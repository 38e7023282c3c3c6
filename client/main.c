/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/profctl.h"

/* main() of profctl, in a file of its own so that tests can link everything else. */

int main(int argc, char **argv) {
    return client_run(argc, argv);
}
