/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/host.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "client/command.h"
#include "client/shell.h"
#include "util/array.h"
#include "util/text.h"

/*
 * The words of -H: which hosts, and what of our own command line is for them. The line goes
 * through a shell over there, so each word is quoted; which of our words belong to -H is known by
 * where its argument points to, however it was written (-H a, -qHa, --host=a).
 */

/* What ssh would take for an option, or a shell or terminal for more than a name, is none. */
static bool is_host(const char *name, size_t n) {
    if (n == 0 || name[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-@:%[]/+", name[i]))
            return false;
    return true;
}

static int add_host(OptionHosts *hosts, const char *name, size_t n) {
    char **at;

    if (!is_host(name, n) || hosts->n >= HOSTS_MAX)
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
        int r = add_host(hosts, argument, n);

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

/* Where in a word the argument of a -H begins; NULL: nowhere. */
static const char *argument_in(const OptionHosts *hosts, const char *word) {
    for (size_t i = 0; i < hosts->n_arguments; i++)
        if (hosts->arguments[i] >= word && hosts->arguments[i] <= word + strlen(word))
            return hosts->arguments[i];
    return NULL;
}

void host_quote_words(Buffer *out, const OptionHosts *hosts, int argc, char *const *argv) {
    for (int i = 1; i < argc; i++) {
        const char *at = argument_in(hosts, argv[i]);
        bool before = i + 1 < argc && argument_in(hosts, argv[i + 1]) == argv[i + 1];
        size_t n = strlen(argv[i]);

        if (at == argv[i])
            continue;
        if ((at || before) && argv[i][1] == '-')
            continue;
        /* A cluster ends at its H; a lone dash is left of -H itself. */
        if (at)
            n = (size_t)(at - argv[i]) - 1;
        else if (before)
            n--;
        if ((at || before) && n <= 1)
            continue;
        text_putc(out, ' ');
        shell_put_word(out, argv[i], n);
    }
}

int host_worse(int a, int b) {
    if (a == HOST_STATUS_UNREACHABLE || b == HOST_STATUS_UNREACHABLE)
        return HOST_STATUS_UNREACHABLE;
    if (a == 0 || b == 0)
        return MAX(a, b);
    return MIN(a, b);
}

void host_leash(void) {
    struct pollfd p = {.fd = STDIN_FILENO};
    int flags = fcntl(STDIN_FILENO, F_GETFL);

    /* What is neither pipe nor socket has no end to wait for, and refuses. */
    if (flags < 0 || fcntl(STDIN_FILENO, F_SETOWN, getpid()) < 0 ||
        fcntl(STDIN_FILENO, F_SETSIG, SIGTERM) < 0 ||
        fcntl(STDIN_FILENO, F_SETFL, flags | O_ASYNC) < 0)
        return;
    if (poll(&p, 1, 0) == 1 && p.revents & POLLHUP)
        (void)raise(SIGTERM);
}
