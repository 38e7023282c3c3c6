/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/host-list.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

/*
 * The value of -H: names of hosts, separated by commas. It also keeps the position of each argument
 * in argv, so that the command line for another host can omit it.
 */

/* A name is refused if ssh could read it as an option, or a shell as more than a word. */
static bool host_list_is_host(const char *name, size_t n) {
    if (n == 0 || name[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-@:%[]/+", name[i]))
            return false;
    return true;
}

static int host_list_add_host(OptionHosts *hosts, const char *name, size_t n) {
    char **at;

    if (!host_list_is_host(name, n) || hosts->n >= HOSTS_MAX)
        return -EINVAL;
    at = array_grow(&hosts->names, &hosts->n);
    if (!at)
        return -ENOMEM;
    *at = strndup(name, n);
    return *at ? 0 : -ENOMEM;
}

int option_hosts(const Option *option, const char *argument, void *field) {
    OptionHosts *hosts = field;
    const char **at = array_grow(&hosts->arguments, &hosts->n_arguments);

    if (!at)
        return -ENOMEM;
    *at = argument;
    for (;;) {
        size_t n = strcspn(argument, ",");
        int r = host_list_add_host(hosts, argument, n);

        if (r < 0 || !argument[n])
            return r;
        argument += n + 1;
    }
}

void option_hosts_done(OptionHosts *hosts) {
    for (size_t i = 0; i < hosts->n; i++)
        free(hosts->names[i]);
    free(hosts->names);
    free(hosts->arguments);
    *hosts = (OptionHosts){};
}
