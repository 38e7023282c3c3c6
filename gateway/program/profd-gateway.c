/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "config/gateway-config.h"
#include "journal/journal.h"
#include "program/gateway-event.h"
#include "program/gateway-option.h"
#include "program/gateway-read.h"
#include "program/gateway-test.h"
#include "program/gateway.h"

/*
 * profd-gateway: the only program of profd with a face to the network. Exit statuses: 0 stopped on
 * request, or the test passed; 1 failed (the log has the reason; with --check-config, the
 * configuration has problems), 2 wrong usage.
 */

enum { STATUS_FAILED = 1, STATUS_USAGE = 2, LARGE_BYTES = 64 << 10 };

static int profd_gateway_check_config(const GatewayOptions *options) {
    _cleanup_(gateway_config_freep) GatewayConfig *config = NULL;
    int problems = gateway_read_config(options, &config);

    return problems == 0 ? EXIT_SUCCESS : STATUS_FAILED;
}

static int profd_gateway_run(const GatewayOptions *options) {
    _cleanup_(gateway_freep) Gateway *gateway = NULL;
    int r = gateway_new(options, &gateway);

    if (r == 0)
        r = gateway_run(gateway);
    return r < 0 ? STATUS_FAILED : EXIT_SUCCESS;
}

/* The tables of a file's symbols are large for a moment: such memory goes back at once, and the
 * threads do not keep some each. */
static void profd_gateway_spare_memory(void) {
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

int main(int argc, char **argv) {
    GatewayOptions options = {.state = "/var/lib/profd-gateway", .runtime = "/run/profd-gateway"};

    if (program_options_parse(&gateway_options, argc, argv, &options) < 0)
        return STATUS_USAGE;
    if (options.help)
        program_options_print_help(&gateway_options);
    if (options.version)
        printf("profd-gateway %s\n", PROFD_VERSION);
    if (options.print_config_keys)
        config_table_print(gateway_config_table());
    if (options.print_options)
        program_options_print_table(&gateway_options);
    if (options.help || options.version || options.print_config_keys || options.print_options)
        return EXIT_SUCCESS;
    journal_attach(&gateway_journal);
    if (options.check_config)
        return profd_gateway_check_config(&options);
    profd_gateway_spare_memory();
    (void)umask(0027);
    (void)signal(SIGPIPE, SIG_IGN);
    if (options.test)
        return gateway_test(&options) < 0 ? STATUS_FAILED : EXIT_SUCCESS;
    return profd_gateway_run(&options);
}
